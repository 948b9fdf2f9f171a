import stat
import tomllib
from pathlib import Path

import pytest

from kt_manifest.contract import blank, manifest
from kt_manifest.contract.snapshot import EnvTarget, Rule


@pytest.mark.parametrize("source", ["self-reported", "engine-observed"])
def test_what_is_written_is_valid_and_says_what_was_asked_for(source: str) -> None:
    adapter = manifest.parse(blank.text(kind="bot", source=source, program="/opt/b c/bot"), origin="x")

    assert ("bot", source) == (adapter.kind, adapter.metering_source)
    assert adapter.start is not None and "/opt/b c/bot" == adapter.start.exec
    observed = Rule("metering.base_url", EnvTarget("OPENAI_BASE_URL")) in adapter.mapping
    assert (source == "engine-observed") == observed


def test_every_line_that_is_commented_out_is_valid_too() -> None:
    """An author takes the `# ` away, a block at a time."""
    lines = blank.text(kind="bot", source="engine-observed", program="bot").splitlines()
    # One rule has one target: the alternatives to it stay away.
    switched = [
        line.removeprefix("# ")
        for line in lines
        if not line.startswith(("# flag", "# file")) and _is_toml(line.removeprefix("# "))
    ]

    adapter = manifest.parse("\n".join(switched), origin="x")

    assert adapter.stop is not None and adapter.ready is not None
    assert "What people are shown" == adapter.display_name


def _is_toml(line: str) -> bool:
    try:
        tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return False
    return True


@pytest.mark.parametrize("program", ["a\nb", 'q"u\\o', "tab\t", "é", "\x7f", "\u202e"])
def test_any_program_that_can_be_named_survives_the_quoting(program: str) -> None:
    if "\\" in program:
        program = "/" + program
    adapter = manifest.parse(blank.text(kind="bot", source="self-reported", program=program), origin="x")

    assert adapter.start is not None and program == adapter.start.exec


@pytest.mark.parametrize(
    ("kind", "program", "says"),
    [
        ("Bad Kind", "x", 'kind = "Bad Kind"'),
        ("mock", "x", 'kind = "mock"'),
        ("a", "./x", "relative to a folder"),
        ("a", "", "no exec"),
        ("a", "x\0", "a NUL character"),
    ],
)
def test_what_cannot_stand_there_is_refused_as_a_bad_value(kind: str, program: str, says: str) -> None:
    with pytest.raises(blank.ValueUnfit, match="unfit for") as refused:
        blank.text(kind=kind, source="self-reported", program=program)

    assert says in str(refused.value)
    assert 2 == refused.value.exit_code


def test_it_appears_whole_readable_by_all_and_alone(tmp_path: Path) -> None:
    file = blank.write(tmp_path / "a" / "b", "x = 1\n")

    assert "x = 1\n" == file.read_text()
    assert 0o644 == stat.S_IMODE(file.stat().st_mode)
    assert [file] == list((tmp_path / "a" / "b").iterdir())


@pytest.mark.parametrize("sort", ["file", "folder", "dangling link"])
def test_nothing_that_is_there_is_ever_replaced(tmp_path: Path, sort: str) -> None:
    file = tmp_path / "adapter.toml"
    match sort:
        case "file":
            file.write_text("mine")
        case "folder":
            file.mkdir()
        case _:
            file.symlink_to("nowhere")

    with pytest.raises(blank.NotWritten, match="there already") as refused:
        blank.write(tmp_path, "x = 1\n")

    assert 1 == refused.value.exit_code
    assert [file] == list(tmp_path.iterdir())
    assert sort != "file" or "mine" == file.read_text()


def test_a_place_that_takes_no_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    for place in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "nul\0", tmp_path / ("n" * 300)):
        with pytest.raises(blank.NotWritten):
            blank.write(place, "x = 1\n")
    assert [tmp_path / "file"] == list(tmp_path.iterdir())
