"""The short fields of a multipart form: what an upload asks for, beside the file itself.

Source: RFC 7578 and RFC 2046 section 5.1.1. Bounded: so many parts are looked at, files are stepped over unread.
"""

import re
from typing import Any

PARTS_LIMIT = 100
VALUE_LIMIT_BYTES = 1 << 10
_BOUNDARY = re.compile(r'boundary="?([^";,]{1,200})"?', re.IGNORECASE)
_NAME = re.compile(rb'\bname="([^"]{1,100})"')
_HEAD_LIMIT_BYTES = 4 << 10
_FLAGS = {"true": True, "false": False}


def fields(body: bytes, content_type: str) -> dict[str, Any]:
    """Return the text fields of a form by name, the first of each; true, false and whole numbers as such."""
    boundary = _BOUNDARY.search(content_type)
    if boundary is None:
        return {}
    mark = b"--" + boundary[1].strip().encode("latin-1", "replace")
    found: dict[str, Any] = {}
    at = body.find(mark)
    for _ in range(PARTS_LIMIT):
        if at < 0 or body.startswith(b"--", at + len(mark)):
            break
        begin = at + len(mark)
        at = body.find(b"\r\n" + mark, begin)
        end = at if at >= 0 else len(body)
        at = at + 2 if at >= 0 else -1
        _take_part(body, begin, end, found)
    return found


def _take_part(body: bytes, begin: int, end: int, found: dict[str, Any]) -> None:
    gap = body.find(b"\r\n\r\n", begin, min(end, begin + _HEAD_LIMIT_BYTES))
    if gap < 0 or end - gap - 4 > VALUE_LIMIT_BYTES:
        return
    head = body[begin:gap]
    name = _NAME.search(head)
    if name is None or b"filename" in head:
        return
    value = body[gap + 4 : end].decode("utf-8", "replace")
    found.setdefault(name[1].decode("utf-8", "replace"), _typed(value))


def _typed(value: str) -> Any:
    flag = _FLAGS.get(value.lower())
    if flag is not None:
        return flag
    return int(value) if value.isascii() and value.isdigit() and len(value) < 20 else value
