import pytest

from kt_gateway.decode.table import DIALECTS, dialect_of


@pytest.mark.parametrize(
    ("method", "path", "family"),
    [
        ("POST", "/v1/chat/completions", "chat.completions"),
        ("POST", "/chat/completions", "chat.completions"),
        ("POST", "/v1/chat/completions/", "chat.completions"),
        ("GET", "/v1/chat/completions", None),
        ("DELETE", "/v1/chat/completions", None),
        ("POST", "/v1/chat/completions/chatcmpl-1", None),
        ("POST", "/v1/completions", None),
        ("POST", "/v1/xchat/completions", None),
        ("post", "/v1/chat/completions", None),
        ("POST", "", None),
    ],
)
def test_method_and_path_decide_the_family(method: str, path: str, family: str | None) -> None:
    dialect = dialect_of(method, path)

    assert (dialect.family if dialect else None) == family


def test_families_are_distinct() -> None:
    assert len({dialect.family for dialect in DIALECTS}) == len(DIALECTS)
