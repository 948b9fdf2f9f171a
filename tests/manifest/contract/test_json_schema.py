"""The schema for editors agrees with the judges: it refuses nothing that is accepted, and what it can of the rest."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kt_manifest.contract import json_schema, kt_schema, manifest, schema

ROOT = Path(__file__).resolve().parents[3]
GOOD = sorted((ROOT / "tests" / "manifests" / "good").glob("*.toml")) + sorted(
    (ROOT / "adapters").glob("*/*.toml")
)
BAD = sorted((ROOT / "tests" / "manifests" / "bad").glob("*.toml"))


def in_python(node: Any) -> Any:
    """Return the schema with its patterns in Python's dialect, where `$` would also match before a final newline."""
    if isinstance(node, list):
        return [in_python(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: value[:-1] + r"\Z" if key == "pattern" and isinstance(value, str) else in_python(value)
        for key, value in node.items()
    }


VALIDATOR = Draft202012Validator(in_python(json_schema.document()))

BEYOND_A_SCHEMA = {
    "clash_*": "what two rules do to each other",
    "path_name_too_long": "bytes are not characters",
    "ready_line_*": "what a pattern costs and finds",
    "ready_http_*": "a variable may stand anywhere",
    "ready_command_relative": "the first word has another rule than the others",
    "ready_deadline_nan": "JSON has no such number",
    "send_url_*": "which hosts are this machine",
    "version_huge*": "the size of a number that is written in a text",
}


def document_of(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_bytes().decode("utf-8-sig"))


def is_toml(path: Path) -> bool:
    return not any(fault.kind == "toml" for fault in manifest.judge(path).faults)


def test_it_is_a_schema_of_the_dialect_that_it_names() -> None:
    Draft202012Validator.check_schema(json_schema.document())

    assert "https://json-schema.org/draft/2020-12/schema" == json_schema.document()["$schema"]
    assert json_schema.document() == json_schema.document()


@pytest.mark.parametrize("path", GOOD, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_is_accepted_is_valid(path: Path) -> None:
    assert [] == [error.message for error in VALIDATOR.iter_errors(document_of(path))]


def test_what_has_not_the_shape_is_not_valid() -> None:
    passed = [path.stem for path in BAD if is_toml(path) and VALIDATOR.is_valid(document_of(path))]

    unexplained = [name for name in passed if not any(Path(name).match(glob) for glob in BEYOND_A_SCHEMA)]
    assert [] == unexplained
    of_the_shape = {"unknown_key", "unknown_word", "missing_section"}
    assert not [
        name
        for name in passed
        for fault in manifest.judge(ROOT / "tests" / "manifests" / "bad" / f"{name}.toml").faults
        if fault.kind in of_the_shape or getattr(fault, "do", "") == "change its type"
    ]


def test_each_explanation_is_still_needed() -> None:
    passed = [path.stem for path in BAD if is_toml(path) and VALIDATOR.is_valid(document_of(path))]

    assert [] == [glob for glob in BEYOND_A_SCHEMA if not any(Path(name).match(glob) for name in passed)]


def test_every_table_and_field_of_the_models_is_there_with_words() -> None:
    whole = json_schema.document()
    models = {"Manifest": schema.Manifest} | {
        name: model
        for module in (schema, kt_schema)
        for name, model in vars(module).items()
        if isinstance(model, type) and issubclass(model, kt_schema.Strict) and model is not kt_schema.Strict
    }

    for name, model in models.items():
        table = whole if name == "Manifest" else whole["$defs"][name]
        assert set(model.model_fields) == set(table["properties"])
        assert table["additionalProperties"] is False
        assert table["description"]
        for field in table["properties"].values():
            target = whole["$defs"][field["$ref"].rpartition("/")[2]] if "$ref" in field else field
            assert field.get("description") or target.get("description"), (name, field)


def test_toml_has_no_null_and_titles_say_nothing() -> None:
    def nodes(node: Any) -> Any:
        if isinstance(node, dict):
            yield node
            for value in node.values():
                yield from nodes(value)
        elif isinstance(node, list):
            for value in node:
                yield from nodes(value)

    found = list(nodes(json_schema.document()))

    assert not any(node.get("type") == "null" for node in found)
    assert ["adapter.toml"] == [node["title"] for node in found if isinstance(node.get("title"), str)]


def test_words_are_offered_and_defaults_told() -> None:
    channel = json_schema.document()["$defs"]["InteractionSection"]["properties"]["channel"]

    assert (["stdio", "http"], "stdio") == (channel["enum"], channel["default"])
