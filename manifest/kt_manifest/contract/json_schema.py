"""The JSON Schema of `adapter.toml`, for editors: completion, words on hover, and most faults while typing.

Derived from the models that judge (`schema`, `kt_schema`), so that a key which one knows the other knows too. It never
refuses what `manifest` accepts. The reverse does not hold: what two rules do to each other, and whether a pattern of
lines is bounded in time, a schema cannot say.
"""

from typing import Any

from kt_manifest.contract import schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def document() -> dict[str, Any]:
    """Return the schema, in the dialect of 2020-12; the same version of kt gives the same."""
    derived = schema.Manifest.model_json_schema(ref_template="#/$defs/{model}")
    definitions = derived.pop("$defs")
    plain = _plain(derived)
    return {
        "$schema": DIALECT,
        "title": "adapter.toml",
        **plain,
        "$defs": {name: _plain(definition) for name, definition in definitions.items()},
    }


def _plain(node: Any) -> Any:
    """Return a part of the schema without what TOML has no word for (null) and without what says nothing (titles)."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    found = {
        key: value
        if key in ("enum", "required", "const")
        else _named(value)
        if key == "properties"
        else _plain(value)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str)) and not (key == "default" and _says_nothing(value))
    }
    return _without_null(found)


def _named(properties: dict[str, Any]) -> dict[str, Any]:
    # A property may be called "title" or "default"; only keywords are looked at.
    return {name: _plain(value) for name, value in properties.items()}


def _says_nothing(default: Any) -> bool:
    return default is None or isinstance(default, dict)


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    choices = node.get("anyOf")
    if not choices or {"type": "null"} not in choices:
        return node
    left = [choice for choice in choices if choice != {"type": "null"}]
    others = {key: value for key, value in node.items() if key != "anyOf"}
    # What the field says of itself wins over what its type says.
    return {**left[0], **others} if len(left) == 1 else {**others, "anyOf": left}
