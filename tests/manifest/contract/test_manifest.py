import os
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kt_manifest.contract import manifest, snapshot
from kt_manifest.contract.capability import Declaration, Level, Support
from kt_manifest.contract.snapshot import Adapter, EnvTarget, Rule, Template

NAMED = (manifest.ManifestInvalid, manifest.ContractIncompatible)
GUARANTEED = Level.GUARANTEED


def test_the_contracts_own_example_becomes_an_adapter(valid: str) -> None:
    expected = Adapter(
        kind="my-agent",
        display_name="My Agent",
        start=Template(exec="my-agent", args=("--serve",), env={"LOG_LEVEL": "info"}),
        stop=Template(exec="my-agent", args=("--shutdown",)),
        declaration=Declaration(
            pause=Support(linux=GUARANTEED, macos=GUARANTEED, windows=Level.BEST_EFFORT),
            interaction=Support(linux=GUARANTEED, macos=GUARANTEED, windows=GUARANTEED),
        ),
        metering_source="self-reported",
        channel="stdio",
        mapping=(Rule("model", EnvTarget("MODEL")),),
        contract_version="1.0.0",
    )

    assert expected == manifest.parse(valid, origin="adapter.toml")


def test_the_shortest_manifest_that_passes() -> None:
    text = (
        'contract_version = "1.0.0"\nadapter.kind = "a"\nlifecycle.start.exec = "/bin/a"\n'
        'capabilities.pause.windows = "best-effort"\nmetering.source = "engine-observed"\n'
    )

    adapter = manifest.parse(text, origin="adapter.toml")

    assert (adapter.kind, adapter.display_name, adapter.channel, adapter.mapping) == ("a", None, "stdio", ())
    assert (adapter.stop, adapter.pause, adapter.resume) == (None, None, None)


@pytest.mark.parametrize("declared", ["1.9.0", "1.0.0-rc.1+build.5", "1.0.1", " 1.0.0\\n"])
def test_any_version_of_the_same_major_is_accepted(valid: str, declared: str) -> None:
    text = valid.replace('"1.0.0"', f'"{declared}"')

    assert manifest.parse(text, origin="adapter.toml").contract_version == declared.replace("\\n", "").strip()


@pytest.mark.parametrize("declared", ["0.1.0", "0.9.9", "2.0.0", "2.0.0-rc.1", "2.1.0"])
def test_another_major_is_refused_in_the_contracts_own_words(valid: str, declared: str) -> None:
    with pytest.raises(manifest.ContractIncompatible) as caught:
        manifest.parse(valid.replace('"1.0.0"', f'"{declared}"'), origin="adapter.toml")

    assert str(caught.value) == (
        f"incompatible adapter contract: manifest declares {declared}, engine speaks 1.0.0 — compatible iff the major "
        "versions match (contract v1 policy, docs/adapter-contract.md#versioning)"
    )
    assert (1, declared) == (manifest.ContractIncompatible.exit_code, caught.value.got)


def test_a_newer_minor_with_a_section_not_known_here_is_an_unknown_key(valid: str) -> None:
    text = valid.replace('"1.0.0"', '"1.9.0"') + "[health]\nport = 1\n"

    with pytest.raises(manifest.ManifestInvalid) as caught:
        manifest.parse(text, origin="adapter.toml")

    assert (caught.value.section, caught.value.kind) == ("[health]", "unknown_key")


def test_an_empty_kt_table_passes(valid: str) -> None:
    assert manifest.parse(valid, origin="x") == manifest.parse(valid + "[kt]\n", origin="x")


def test_an_invalid_manifest_tells_got_wanted_and_what_to_do(valid: str) -> None:
    with pytest.raises(manifest.ManifestInvalid) as caught:
        manifest.parse(valid.replace("[metering]", "[meterin]"), origin="somewhere/adapter.toml")

    error = caught.value
    assert error.exit_code == 1
    assert str(error).startswith("somewhere/adapter.toml: unknown key in [meterin]: ")
    assert all(part and part in str(error) for part in (error.got, error.wanted, error.do))
    assert error.do == "did you mean metering?"


def test_a_folder_and_the_file_in_it_are_the_same_manifest(tmp_path: Path, valid: str) -> None:
    file = tmp_path / "adapter.toml"
    file.write_text("\ufeff" + valid.replace("\n", "\r\n"), encoding="utf-8")

    assert manifest.parse(valid, origin="x") == manifest.load(file) == manifest.load(tmp_path)


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to("nowhere")

    for path in (tmp_path, tmp_path / "no.toml", tmp_path / "file" / "adapter.toml", tmp_path / "dangling"):
        with pytest.raises(manifest.ManifestNotFound) as caught:
            manifest.load(path)

        assert (3, path) == (caught.value.exit_code, caught.value.path)
        assert all(part in str(caught.value) for part in (str(path), caught.value.wanted, caught.value.do))


def test_what_is_no_readable_file_is_refused_without_waiting(tmp_path: Path) -> None:
    (tmp_path / "folder" / "adapter.toml").mkdir(parents=True)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "large").write_text("# " + "x" * 300_000)
    places = ("folder", "fifo", "loop", "large", "n" * 300, "nul\0")

    for path in [*(tmp_path / place for place in places), Path("/dev/zero")]:
        with pytest.raises(manifest.ManifestUnreadable) as caught:
            manifest.load(path)

        assert caught.value.exit_code == 1
        assert all(part and part in str(caught.value) for part in (caught.value.got, caught.value.do))


def test_bytes_that_are_no_text_are_no_toml(tmp_path: Path, valid: str) -> None:
    (tmp_path / "adapter.toml").write_bytes(valid.encode() + b'x = "\xff"\n')

    with pytest.raises(manifest.ManifestInvalid, match=r"line 26: byte \d+ is not UTF-8") as caught:
        manifest.load(tmp_path)

    assert caught.value.kind == "toml"


def test_editing_or_deleting_the_file_changes_nothing_that_was_frozen(tmp_path: Path, valid: str) -> None:
    (tmp_path / "adapter.toml").write_text(valid)
    frozen = manifest.load(tmp_path).to_json()

    (tmp_path / "adapter.toml").unlink()

    assert manifest.parse(valid, origin="x") == snapshot.Adapter.from_json(frozen)


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 100_000,
        "x = " + "{a = " * 50_000,
        ".".join("a" * 100_000) + " = 1",
        "[" + ".".join("a" * 100_000) + "]",
        "x = " + "1" * 100_000,
        "adapter = " + "[" * 300 + "]" * 300,
        "config.model = {" + "a." * 900 + "b = 1}",
        "\0",
        "x = '\0'",
        "x = 1\nx = 2",
        "[adapter]\n[adapter]",
        "x = 2024-13-45",
        "x = 1979-05-27T07:32:00+99:00",
        'x = "\\ud800"',
        "x = '\ud800'",
        "adapter.kind = '\ud800'",
        "'\ud800' = 1",
        "\u202e = 1",
        "x",
        "=",
        "[",
        "#" * 262_145,
    ],
    ids=range(22),
)
def test_hostile_text_is_a_named_error(text: str) -> None:
    with pytest.raises(manifest.ManifestInvalid) as caught:
        manifest.parse(text, origin="adapter.toml")

    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 600


def _assert_first_of_all(error: Exception, text: str) -> None:
    """Every check sees every document when all faults are asked for, so none may trust what another would refuse."""
    found = [str(fault) for fault in manifest.faults(text, origin="adapter.toml")]

    assert found[:1] == [str(error)]


FRAGMENTS = [
    "[adapter]", "[config.a]", '[config."a.b"]', "[kt]", "[kt.x]", "[[config]]", "[lifecycle.start]", "[capabilities]",
    "kind", "exec", "args", "env", "file", "flag", "source", "linux", "contract_version", "=", "{", "}", "[", "]", ",",
    ".", '"', "'", '"""', "\n", "\\", "\\u0000", "\0", "\ud800", "1", "true", "1e9", "nan", "1979-05-27", "/", "..",
    '"x"', '"/x"', '"config.toml"', '"1.0.0"', '"2.0.0"', "guaranteed", "é", "\r", "\t", "#",
]  # fmt: skip


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_mutation_of_a_manifest_raises_anything_but_a_named_error(valid: str, data: st.DataObject) -> None:
    text = valid
    for _ in range(data.draw(st.integers(1, 6))):
        start = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 12))
        piece = data.draw(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=3)))
        text = text[:start] + piece + text[start + cut :]

    try:
        adapter = manifest.parse(text, origin="adapter.toml")
    except NAMED as error:
        assert len(str(error).splitlines()) == 1
        _assert_first_of_all(error, text)
    else:
        assert adapter == snapshot.Adapter.from_json(adapter.to_json())


SCALARS = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.sampled_from(["stdio", "1.0.0"]),
)
KEYS = st.sampled_from(
    ["adapter", "kind", "start", "exec", "args", "env", "pause", "linux", "source", "model", "file", "x"]
)
TREES = st.recursive(
    SCALARS,
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(KEYS, below, max_size=4)),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["adapter", "lifecycle", "capabilities", "metering", "interaction", "config", "kt"]),
        TREES,
    )
)
def test_any_tree_of_any_types_is_judged_without_surprise(document: dict[str, object]) -> None:
    import tomlkit

    text = tomlkit.dumps({"contract_version": "1.0.0", **document})

    try:
        manifest.parse(text, origin="adapter.toml")
    except NAMED as error:
        assert len(str(error).splitlines()) == 1
        _assert_first_of_all(error, text)


def test_every_fault_is_given_at_once_or_the_syntax_alone(valid: str) -> None:
    assert manifest.faults(valid, origin="x") == []
    assert [fault.kind for fault in manifest.faults("x = =", origin="x")] == ["toml"]
    assert [fault.section for fault in manifest.faults("", origin="x")] == [
        "contract_version",
        "[adapter]",
        "[lifecycle]",
        "[capabilities]",
        "[metering]",
    ]


def test_a_fifo_that_somebody_writes_to_is_refused_as_well(tmp_path: Path) -> None:
    fifo = tmp_path / "adapter.toml"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    writer = threading.Thread(target=lambda: fifo.write_text("x"))
    writer.start()

    with pytest.raises(manifest.ManifestUnreadable, match="a FIFO"):
        manifest.load(tmp_path)

    writer.join(timeout=10)
    os.close(reader)


def test_an_address_to_send_to_is_frozen_with_the_rest(valid: str) -> None:
    adapter = manifest.parse(valid + '[kt.send]\nurl = "http://localhost:4096/message"\n', origin="x")

    assert "http://localhost:4096/message" == adapter.send_url
    assert adapter == Adapter.from_json(adapter.to_json())


LINES = """
contract_version = "1"

[adapter]
name = "a\\u0007"
kind = "A"

[lifecycle]
start = { args = [
  "a",
  3,
], exec = "" }

[capabilities.pause]

[config."a.b"]
env = "X"
flag = "--x"

[config]
model = { env = "X", file = 3 }
"""


def test_a_fault_has_the_line_of_its_key_or_else_of_its_section(tmp_path: Path) -> None:
    (tmp_path / "adapter.toml").write_text(LINES)

    found = [(fault.line, fault.section, fault.got) for fault in manifest.judge(tmp_path).faults]

    assert [
        (2, "contract_version", '"1"'),
        (6, "[adapter]", 'kind = "A"'),
        (5, "[adapter]", "name with a control character"),
        (11, "[lifecycle.start]", "args.1 = 3 (an integer)"),
        (12, "[lifecycle.start]", "no exec"),
        (14, "[capabilities]", "nothing supported on any system"),
        (None, "[metering]", "nothing"),
        (21, "[config.model]", "file = 3 (an integer)"),
        (16, '[config."a.b"]', "env and flag"),
        (21, "[config.model]", "env and file"),
        (21, "[config.model]", 'file.path "": an empty path'),
    ][:9] == found[:9]
    assert {line for line, section, _ in found[9:]} == {21}


def test_what_is_no_toml_has_the_line_that_the_parser_names(tmp_path: Path) -> None:
    (tmp_path / "adapter.toml").write_text("a = 1\n\n= 2\n")

    [fault] = manifest.judge(tmp_path).faults

    assert 3 == fault.line


def test_the_only_fault_of_another_major_has_a_line_as_well(tmp_path: Path, valid: str) -> None:
    (tmp_path / "adapter.toml").write_text("# one\n" + valid.replace('"1.0.0"', '"2.0.0"'))

    [fault] = manifest.judge(tmp_path).faults

    assert (2, "contract_version", "incompatible_contract") == (fault.line, fault.section, fault.kind)
