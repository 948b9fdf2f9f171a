import json
import tomllib
from pathlib import Path
from typing import Any

from kt_manifest.contract import capability, shipped

ROOT = Path(__file__).resolve().parents[3]


def test_the_shipped_ones_are_listed_with_what_they_can_do_here(kt: Any) -> None:
    done = kt("adapter", "list")
    as_json = json.loads(kt("adapter", "list", "--json").out)

    there = shipped.found()
    assert 0 == done.code
    for each in there:
        assert each.adapter.kind in done.out
    assert str(ROOT / "adapters") in done.err and "command, mock" in done.err
    assert (1, capability.this_os()) == (as_json["schema_version"], as_json["os"])
    assert [each.adapter.kind for each in there] == [row["kind"] for row in as_json["adapters"]]
    for row in as_json["adapters"]:
        assert {"kind", "name", "metering_source", "capabilities", "folder", "template"} == set(row)
        assert {"pause", "interaction"} == set(row["capabilities"])
        assert (Path(row["folder"]) / "adapter.toml").is_file()
    assert 3 == done.out.count("template)") == sum(row["template"] for row in as_json["adapters"])
    assert not kt.state.exists()


def test_one_is_shown_by_its_kind_or_its_path(kt: Any, tmp_path: Path) -> None:
    by_kind = kt("adapter", "show", "openai-compatible")
    path = ROOT / "adapters" / "openai-compatible"

    assert 0 == by_kind.code
    assert "A template: copy it" in by_kind.err
    assert by_kind.out == kt("adapter", "show", str(path)).out
    assert "variable OPENAI_BASE_URL" in by_kind.out and "guaranteed" in by_kind.out

    document = json.loads(kt("adapter", "show", str(path / "adapter.toml"), "--json").out)
    assert (1, "guaranteed") == (document["schema_version"], document["capabilities_here"]["pause"])
    assert "engine-observed" == document["adapter"]["metering_source"]
    assert not kt.state.exists()


def test_every_sort_of_target_and_operation_is_shown(kt: Any) -> None:
    shown = kt("adapter", "show", str(ROOT / "tests" / "manifests" / "good" / "everything.toml")).out

    for words in (
        "flag --base-url",
        "key memory.dir in file config/agent.toml",
        "agent --shutdown",
        "LOG_LEVEL",
        "http",
    ):
        assert words in shown


def test_everything_that_kt_declares_is_shown(kt: Any) -> None:
    everything = ROOT / "tests" / "manifests" / "good" / "kt_everything.toml"
    shown = kt("adapter", "show", str(everything)).out
    codex = kt("adapter", "show", "codex").out

    declared = tomllib.loads(everything.read_text("utf-8"))["kt"]
    titles = {"isolation", "updates", "version", "ready", "send", "substitution", "test"} & declared.keys()
    assert titles and all(title.capitalize() in shown for title in titles)
    assert "the whole of file codex/config.toml" in codex and "key \n" not in codex
    assert "merged into what is there" in shown


def test_an_unknown_kind_and_a_path_that_is_not_there_are_told_apart(kt: Any, tmp_path: Path) -> None:
    unknown = kt("adapter", "show", "openai-compatibel")
    absent = kt("adapter", "show", "./nowhere")
    (tmp_path / "adapter.toml").write_text('contract_version = "2.0.0"\n')

    assert (2, "") == (unknown.code, unknown.out)
    assert "did you mean openai-compatible?" in unknown.err
    assert (3, 1) == (absent.code, kt("adapter", "show", str(tmp_path)).code)


def test_every_read_of_a_manifest_negotiates(kt: Any, tmp_path: Path) -> None:
    text = (ROOT / "adapters" / "self-reporting" / "adapter.toml").read_text()
    (tmp_path / "adapter.toml").write_text(text.replace('"1.0.0"', '"2.1.0"'))
    message = (
        "kt: incompatible adapter contract: manifest declares 2.1.0, engine speaks 1.0.0 — compatible iff the major "
        "versions match (contract v1 policy, docs/adapter-contract.md#versioning)"
    )

    for words in (
        ("agent", "register", "x", "--manifest", str(tmp_path)),
        ("adapter", "validate", str(tmp_path)),
        ("adapter", "show", str(tmp_path)),
    ):
        done = kt(*words)

        assert (1, "") == (done.code, done.out)
        assert done.err.startswith(message)
    assert not kt.state.exists()
