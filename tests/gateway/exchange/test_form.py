import pytest

from kt_gateway.decode import audio
from kt_gateway.exchange import form, request

TYPE = "multipart/form-data; boundary=b1"


def part(name: str, value: bytes, more: bytes = b"") -> bytes:
    return b'--b1\r\nContent-Disposition: form-data; name="%b"%b\r\n\r\n%b\r\n' % (name.encode(), more, value)


END = b"--b1--\r\n"


def test_short_fields_are_read_and_files_are_not() -> None:
    sound = b"\r\n--b2\r\n" + b"\0" * 5000
    body = (
        part("file", sound, b'; filename="a.wav"')
        + part("model", b"whisper-1")
        + part("stream", b"true")
        + END
    )

    assert {"model": "whisper-1", "stream": True} == form.fields(body, TYPE)


@pytest.mark.parametrize(
    ("value", "read"),
    [(b"5", 5), (b"", ""), (b"FALSE", False), (b"-5", "-5"), (b"9" * 30, "9" * 30), (b"\xff", "\ufffd")],
)
def test_values_have_a_type(value: bytes, read: object) -> None:
    assert {"n": read} == form.fields(part("n", value) + END, TYPE)


def test_the_first_of_two_fields_counts() -> None:
    assert {"n": 1} == form.fields(part("n", b"1") + part("n", b"2") + END, TYPE)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (part("n", b"1"), "multipart/form-data"),
        (b"", TYPE),
        (b"--b1", TYPE),
        (b"--b1\r\nno head", TYPE),
        (part("n", b"1"), "multipart/form-data; boundary=other"),
        (part("n", b"x" * 2000) + END, TYPE),
        (END + part("n", b"1"), TYPE),
    ],
)
def test_anything_else_says_nothing(body: bytes, content_type: str) -> None:
    assert {} == form.fields(body, content_type)


def test_a_form_of_many_parts_is_not_read_to_its_end() -> None:
    body = b"".join(part(f"n{number}", b"1") for number in range(5000))

    assert len(form.fields(body, TYPE)) == form.PARTS_LIMIT


def test_what_an_upload_asks_for_is_read() -> None:
    body = part("file", b"RIFF", b'; filename="a"') + part("model", b"m") + part("stream", b"true") + END
    sent = request.Sent(body=body, content_type=TYPE, content_encoding="")

    asked, forwarded = request.read(
        sent, audio.TRANSCRIPTION.asks, known=request.NOTHING_KNOWN, inject=lambda model: True
    )

    assert (asked.model, asked.stream) == ("m", True)
    assert forwarded is body
