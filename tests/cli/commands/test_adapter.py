import json
from pathlib import Path
from typing import Any

FAULTY = """
contract_version = "1.0.0"
surplus = 1

[adapter]
kind = "Bad Kind"

[lifecycle.start]
exec = ""

[metering]
source = "nobody"
"""


def test_all_faults_are_told_and_the_first_is_the_one_of_a_registration(
    shared_kt: Any, tmp_path: Path
) -> None:
    kt = shared_kt
    (tmp_path / "adapter.toml").write_text(FAULTY)

    done = kt("adapter", "validate", str(tmp_path))
    as_json = json.loads(kt("adapter", "validate", str(tmp_path), "--json").out)
    refused = kt("agent", "register", "bot", "--manifest", str(tmp_path))

    assert (1, "") == (done.code, done.out)
    faults = [fault["message"] for fault in as_json["faults"]]
    assert len(faults) >= 4
    lines = [fault["line"] for fault in as_json["faults"]]
    assert [3, 12, 6, 9, None] == lines
    shown = [
        f"kt: {fault}" + (f" (line {line})" if line else "")
        for fault, line in zip(faults, lines, strict=True)
    ]
    assert shown == done.err.splitlines()
    assert f"kt: {faults[0]}\n" == refused.err
    assert not as_json["valid"]
    assert {"section", "kind", "line", "got", "wanted", "do", "message"} == set(as_json["faults"][0])


def test_a_valid_one_is_told_with_what_it_can_do(kt: Any) -> None:
    shipped = next((Path(__file__).resolve().parents[3] / "adapters").glob("*/adapter.toml"))

    done = kt("adapter", "validate", str(shipped))
    as_json = json.loads(kt("adapter", "validate", str(shipped.parent), "--json").out)

    assert 0 == done.code
    assert "is valid: kind" in done.out and "windows" in done.out
    assert (True, []) == (as_json["valid"], as_json["faults"])
    assert not kt.state.exists()


def test_an_other_major_is_told_once_nothing_else_is_wrong(kt: Any, tmp_path: Path) -> None:
    shipped = next((Path(__file__).resolve().parents[3] / "adapters").glob("*/adapter.toml")).read_text()
    (tmp_path / "adapter.toml").write_text(shipped.replace('"1.0.0"', '"2.0.0"'))

    [fault] = json.loads(kt("adapter", "validate", str(tmp_path), "--json").out)["faults"]

    assert ("incompatible_contract", "contract_version") == (fault["kind"], fault["section"])
    assert (
        (tmp_path / "adapter.toml").read_text().splitlines()[fault["line"] - 1].startswith("contract_version")
    )


def test_a_folder_without_a_manifest_is_told_as_one(kt: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    for verb in ("validate", "show", "test"):
        done = kt("adapter", verb, "./empty", cwd=tmp_path)

        assert (3, "") == (done.code, done.out)
        assert "got no adapter.toml in empty, wanted" in done.err
        assert "--manifest" not in done.err


def test_one_that_comes_with_kt_is_named_by_its_kind(kt: Any, tmp_path: Path) -> None:
    (tmp_path / "codex").mkdir()

    assert "kind claude-code." in kt("adapter", "validate", "claude-code", cwd=tmp_path).out
    assert 2 == kt("adapter", "test", "claude-code", "--section", "none", cwd=tmp_path).code
    assert 3 == kt("adapter", "validate", "codex", cwd=tmp_path).code, "a path that is there comes first"
    assert 3 == kt("adapter", "validate", "nonesuch", cwd=tmp_path).code


def test_what_is_no_toml_and_what_is_not_there(kt: Any, tmp_path: Path) -> None:
    (tmp_path / "adapter.toml").write_bytes(b"\xff\xfe = [")

    assert 1 == kt("adapter", "validate", str(tmp_path)).code
    assert 3 == kt("adapter", "validate", str(tmp_path / "none")).code
    assert 2 == kt("adapter", "validate").code
