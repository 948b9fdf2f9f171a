"""What a keeper is told is checked where it is built and where it arrives."""

import json

import pytest

from kt_supervisor.keeper import specification

FIELDS: dict[str, object] = {
    "protocol": 1,
    "run_id": "r",
    "instance_id": "i",
    "name": "n",
    "state_dir": "/s",
    "argv": ["/bin/true"],
    "env": {"A": "\udcff"},
    "cwd": "/",
    "interactive": True,
    "engine_command": ["/e"],
    "engine_env": {},
    "lend_from": None,
    "segment_limit_bytes": 10,
}


def test_what_was_built_is_what_arrives() -> None:
    fields = {name: value for name, value in FIELDS.items() if name != "protocol"}

    spec = specification.parse(specification.build(**fields))  # type: ignore[arg-type]

    assert {name: getattr(spec, name) for name in fields} == fields
    assert (spec.gateway_grace_s, spec.sweep_grace_s) == (60, 1)


def test_a_field_of_a_newer_engine_is_ignored() -> None:
    spec = specification.parse(json.dumps(FIELDS | {"colour": "blue"}).encode())

    assert spec.run_id == "r"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("protocol", 2),
        ("run_id", "../other"),
        ("run_id", ".."),
        ("run_id", None),
        ("argv", []),
        ("argv", "/bin/true"),
        ("argv", ["/bin/true", 3]),
        ("env", {"A": 1}),
        ("env", []),
        ("cwd", 3),
        ("lend_from", 3),
        ("segment_limit_bytes", 0),
        ("segment_limit_bytes", True),
        ("segment_limit_bytes", "big"),
        ("gateway_grace_s", -1),
        ("engine_command", "kt"),
    ],
)
def test_a_wrong_field_is_named_with_got_and_wanted(field: str, value: object) -> None:
    with pytest.raises(specification.SpecificationInvalid, match=rf"{field}.*wanted"):
        specification.parse(json.dumps(FIELDS | {field: value}).encode())


@pytest.mark.parametrize("field", ["instance_id", "name", "state_dir", "argv", "env", "cwd", "engine_env"])
def test_a_missing_field_is_named(field: str) -> None:
    fields = {name: value for name, value in FIELDS.items() if name != field}

    with pytest.raises(specification.SpecificationInvalid, match=f"{field}: got nothing"):
        specification.parse(json.dumps(fields).encode())


def test_a_secret_in_a_wrong_field_is_not_repeated() -> None:
    with pytest.raises(specification.SpecificationInvalid) as raised:
        specification.parse(json.dumps(FIELDS | {"env": ["KEY=sk-secret"]}).encode())

    assert "sk-secret" not in str(raised.value)
