from pathlib import Path

from kt_ledger.layout import StateLayout
from kt_supervisor.doctor import settings
from kt_supervisor.doctor.finding import Level


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_files_that_can_be_used_and_files_that_are_not_there_are_well(tmp_path: Path) -> None:
    files = StateLayout(tmp_path)
    none = settings.files_of_settings(files)

    _write(files.fleet_config, 'model = "a"\n')
    _write(files.home("bot") / "config.toml", 'model = "b"\n')
    files.home("other").mkdir()

    assert [Level.OK] * 2 == [none.level, settings.files_of_settings(files).level]


def test_each_that_cannot_be_used_is_told_with_its_place(tmp_path: Path) -> None:
    files = StateLayout(tmp_path)
    _write(files.fleet_config, 'modle = "a"\n')
    _write(files.home("bot") / "config.toml", "model =\n")
    _write(files.home(".removed-x") / "config.toml", "model =\n")

    finding = settings.files_of_settings(files)

    assert Level.BAD is finding.level
    assert "did you mean model?" in finding.found
    assert str(files.fleet_config) in finding.found
    assert f"{files.home('bot')}/config.toml, line 1" in finding.found
    assert ".removed-x" not in finding.found


def test_many_are_counted(tmp_path: Path) -> None:
    files = StateLayout(tmp_path)
    _write(files.fleet_config, "".join(f"unheard{number} = 1\n" for number in range(9)))

    assert "(and 6 more)" in settings.files_of_settings(files).found
