import stat
from pathlib import Path

import pytest

from kt_ledger.layout import StateLayout
from kt_supervisor.engine.run import run_environment

VARIABLES = {"PATH": "/bin", "ODD": "\udcff", "EMPTY": ""}


@pytest.fixture
def files(tmp_path: Path) -> StateLayout:
    return StateLayout(tmp_path)


def test_what_was_kept_is_found_again_whatever_bytes_it_holds(files: StateLayout) -> None:
    run_environment.store(files, "i", VARIABLES)

    assert VARIABLES == run_environment.load(files, "i")


def test_nobody_else_can_read_it_from_the_beginning(files: StateLayout) -> None:
    run_environment.store(files, "i", VARIABLES)

    path = files.environment("i")
    assert (0o600, 0o700) == tuple(stat.S_IMODE(p.stat().st_mode) for p in (path, path.parent))


def test_a_secret_is_kept_by_its_name_only(files: StateLayout) -> None:
    run_environment.store(files, "i", {"TOKEN": "sk-canary", "PATH": "/bin"}, secret_names=["TOKEN", "OTHER"])

    kept = files.environment("i").read_text()
    assert "sk-canary" not in kept
    assert '"OTHER"' in kept
    assert {"PATH": "/bin"} == run_environment.load(files, "i")


def test_keeping_the_same_again_writes_nothing(files: StateLayout) -> None:
    run_environment.store(files, "i", VARIABLES)
    before = files.environment("i").stat().st_ino

    run_environment.store(files, "i", VARIABLES)

    assert before == files.environment("i").stat().st_ino


def test_a_later_start_replaces_an_earlier_one(files: StateLayout) -> None:
    run_environment.store(files, "i", VARIABLES)

    run_environment.store(files, "i", {"A": "1"})

    assert {"A": "1"} == run_environment.load(files, "i")
    assert ["i.json"] == [path.name for path in files.environment("i").parent.iterdir()]


def test_nothing_is_known_of_an_instance_that_was_never_started_or_is_removed(files: StateLayout) -> None:
    run_environment.store(files, "gone", VARIABLES)

    run_environment.forget(files, "gone")
    run_environment.forget(files, "gone")

    assert [None, None] == [run_environment.load(files, name) for name in ("gone", "never")]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"schema_version": 2, "environment": {}}',
        b'{"schema_version": 1, "environment": {"A": 1}}',
        b'{"schema_version": 1}',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_a_damaged_file_is_no_environment(files: StateLayout, content: bytes) -> None:
    run_environment.store(files, "i", VARIABLES)
    files.environment("i").write_bytes(content)

    assert run_environment.load(files, "i") is None


def test_a_file_that_others_can_change_is_no_environment(files: StateLayout) -> None:
    run_environment.store(files, "i", VARIABLES)
    files.environment("i").chmod(0o620)

    assert run_environment.load(files, "i") is None


def test_a_symbolic_link_is_no_environment_and_is_replaced(files: StateLayout, tmp_path: Path) -> None:
    run_environment.store(files, "real", {"A": "1"})
    files.environment("i").symlink_to(files.environment("real"))

    seen = run_environment.load(files, "i")
    run_environment.store(files, "i", {"B": "2"})

    assert seen is None
    assert ({"A": "1"}, {"B": "2"}) == tuple(run_environment.load(files, name) for name in ("real", "i"))


def test_a_pipe_in_its_place_blocks_nobody(files: StateLayout) -> None:
    import os

    files.environment("i").parent.mkdir()
    os.mkfifo(files.environment("i"), 0o600)

    assert run_environment.load(files, "i") is None
