"""No spelling of a path gets out of the upstream's base."""

import posixpath
from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from kt_gateway.http1 import paths

_PARTS = st.sampled_from(
    ["/", ".", "..", "%2e", "%2E", "%2f", "%5c", "\\", ";", "a", "v1", "%25", "2e", "//", "chat"]
)


@given(st.lists(_PARTS, max_size=10), st.sampled_from(["", "/v1", "/api/v1", "/openai"]))
def test_what_passes_stays_below_the_base_however_a_server_decodes_it(parts: list[str], prefix: str) -> None:
    asked = ("/" + "".join(parts)).encode()
    if paths.is_sly(asked):
        return
    reached = paths.at_upstream(asked, prefix.encode())
    if reached is None:
        return

    read = reached.decode()
    for _ in range(4):
        normal = posixpath.normpath(read.replace("\\", "/").replace(";", "/"))
        assert normal == prefix or normal.lstrip("/").startswith(prefix.lstrip("/") + "/" if prefix else "")
        read = unquote(read)


@given(st.text(st.characters(codec="ascii", exclude_characters="%\\."), max_size=30))
def test_plain_paths_are_not_sly(path: str) -> None:
    assert not paths.is_sly(b"/" + path.encode())


def test_dots_in_names_are_not_sly() -> None:
    assert not paths.is_sly(b"/v1/models/gpt-4.1-mini..x")
    assert not paths.is_sly(b"/v1/.well-known/x")
    assert not paths.is_sly(b"/v1/models/org%20name")


def test_names_of_models_may_have_slashes() -> None:
    assert not paths.is_sly(b"/v1/models/org%2Fname")
    assert paths.is_sly(b"/v1/models/org%2F..%2Fname")
