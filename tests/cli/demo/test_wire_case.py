import gzip
import http.client
import io
import zlib
from pathlib import Path

import brotli
import pytest
import zstandard

from kt_cli.demo import wire_case

ROOT = Path(__file__).parents[3] / "fixtures" / "wire"
CASES = wire_case.load_all(ROOT)
UNDO = {
    "": lambda body: body,
    "gzip": gzip.decompress,
    "deflate": zlib.decompress,
    "deflate-raw": lambda body: zlib.decompress(body, -15),
    "br": brotli.decompress,
    "zstd": lambda body: zstandard.ZstdDecompressor().decompressobj().decompress(body),
}


class Wire:
    """A socket as far as http.client needs one."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self._data)


def received(case: wire_case.Case) -> tuple[http.client.HTTPResponse, bytes]:
    response = http.client.HTTPResponse(Wire(b"".join(piece.data for piece in case.pieces())))  # type: ignore[arg-type]
    response.begin()
    return response, response.read()


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.response.end == "clean"], ids=lambda case: case.name
)
def test_the_wire_bytes_are_an_http_answer_with_the_body(case: wire_case.Case) -> None:
    response, body = received(case)

    assert response.status == case.response.status
    assert UNDO[case.response.encoding](body) == case.response.body


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.response.end != "clean"], ids=lambda case: case.name
)
def test_an_answer_that_is_cut_does_not_end_properly(case: wire_case.Case) -> None:
    with pytest.raises(http.client.IncompleteRead):
        received(case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_case_says_where_it_comes_from(case: wire_case.Case) -> None:
    source = (ROOT / case.name / "SOURCE.md").read_text()

    assert case.synthetic == ("synthetic: true" in source)


def test_a_pause_stands_between_pieces_of_the_body() -> None:
    case = next(case for case in CASES if case.name.endswith("/stream-asked"))

    pauses = [piece.pause_ms for piece in case.pieces()]

    assert pauses == [0, 0, *[20] * (len(case.body_pieces()) - 1), 0]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("synthetic = true", "wanted synthetic"),
        ('[response]\nstatsu = 200\n[expect]\ncompleteness = "exact"', "statsu"),
        ('[response]\nframing = "odd"\n[expect]\ncompleteness = "exact"', "framing"),
        ('[response]\npieces = "odd"\n[expect]\ncompleteness = "exact"', "pieces"),
        ('[response]\n[expect]\ncompleteness = "exact"\nagent = "odd"', "agent"),
        ('[response]\n[expect]\ncompleteness = "exact"\n[typo]', "typo"),
    ],
)
def test_a_case_that_does_not_follow_the_format_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "case.toml").write_text(text)

    with pytest.raises(wire_case.CaseInvalid, match=complaint):
        wire_case.load(tmp_path)
