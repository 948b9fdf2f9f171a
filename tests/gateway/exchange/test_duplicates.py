import pytest

from kt_gateway.decode.chat import SHAPE
from kt_gateway.exchange.duplicates import repeats


@pytest.mark.parametrize(
    ("document", "twice"),
    [
        (b'{"usage":{"prompt_tokens":1}}', False),
        (b'{"usage":{"prompt_tokens":1,"prompt_tokens":2}}', True),
        (b'{"usage":{},"usage":{}}', True),
        (b'{"usage":{"prompt_tokens":1},"x_groq":{"usage":{"prompt_tokens":1}}}', False),  # not in one object
        (b'{"text":"\\"usage\\" \\"usage\\"","usage":{}}', False),
        (b'{"usage":1,"usage"', False),  # no JSON
        (b'{"usage":"usage"' + b"[" * 100_000, False),
    ],
)
def test_a_member_named_twice_is_seen(document: bytes, twice: bool) -> None:
    assert repeats(document, SHAPE) == twice
