import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from kt_ledger.clock import ManualClock
from kt_ledger.records import InstanceRow, State
from kt_ledger.store import SchemaNewer, StoreUnavailable, schema
from kt_ledger.store.sqlite import SqliteStore, open_store
from kt_ledger.values import Source


def opened(path: Path) -> SqliteStore:
    return SqliteStore(path, clock=ManualClock())


def pragma(store: SqliteStore, name: str) -> object:
    with store.engine.connect() as connection:
        return connection.exec_driver_sql(f"PRAGMA {name}").scalar()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_file_is_private_from_birth_whatever_the_umask(path: Path) -> None:
    before = os.umask(0)
    try:
        store = opened(path)
    finally:
        os.umask(before)

    assert {"ledger.db": 0o600, "ledger.db-wal": 0o600} == {
        one.name: mode(one) for one in path.parent.iterdir()
    }
    store.close()


def test_the_connection_is_exclusive_durable_and_checks_keys(path: Path) -> None:
    store = opened(path)

    facts = [pragma(store, name) for name in ("locking_mode", "journal_mode", "synchronous", "foreign_keys")]

    assert ["exclusive", "wal", 2, 1] == facts
    assert not path.with_name("ledger.db-shm").exists()
    store.close()


def test_a_second_process_is_refused_and_told_why(path: Path) -> None:
    store = opened(path)
    code = (
        "import sys; from pathlib import Path; from kt_ledger.clock import ManualClock\n"
        "from kt_ledger.store.sqlite import open_store\n"
        "open_store(Path(sys.argv[1]), clock=ManualClock())"
    )

    second = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )

    assert "StoreUnavailable" in second.stderr
    assert "another process has it open" in second.stderr
    store.add_instance(InstanceRow(id="i", name="n", kind="k", adapter="{}", created_at_ns=1))
    store.close()


RACER = """
import sys
from pathlib import Path
from kt_ledger.clock import ManualClock
from kt_ledger.records import InstanceRow
from kt_ledger.store import StoreUnavailable
from kt_ledger.store.sqlite import open_store

sys.stdin.readline()
try:
    store = open_store(Path(sys.argv[1]), clock=ManualClock())
    store.add_instance(InstanceRow(id=sys.argv[2], name=sys.argv[2], kind="k", adapter="{}", created_at_ns=1))
    print(sys.argv[2], flush=True)
except StoreUnavailable as refused:
    print("refused:", refused, flush=True)
sys.stdin.readline()
"""


def test_of_many_that_make_the_ledger_at_once_none_takes_it_from_another(path: Path) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(path), str(n)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for n in range(4)
    ]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    said = [racer.stdout.readline().strip() for racer in racers if racer.stdout]
    for racer in racers:
        racer.communicate("\n")

    store = opened(path)
    winners = [word for word in said if not word.startswith("refused")]
    assert 1 == len(winners)
    assert winners == [row.id for row in store.instances()]
    assert all("another process has it open" in word for word in said if word not in winners)
    store.close()


@pytest.mark.parametrize("content", [b"not a database at all, only text " * 40, b"\x00" * 4096])
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(path: Path, content: bytes) -> None:
    path.write_bytes(content)

    with pytest.raises(StoreUnavailable, match="wanted to open it"):
        open_store(path, clock=ManualClock())

    assert content == path.read_bytes()
    assert ["ledger.db"] == [one.name for one in path.parent.iterdir()]


def test_somebody_elses_database_is_refused_and_left_as_it_is(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    content = path.read_bytes()

    with pytest.raises(StoreUnavailable, match="some other program"):
        open_store(path, clock=ManualClock())

    assert content == path.read_bytes()


def test_a_later_schema_is_refused_and_left_as_it_is(path: Path) -> None:
    opened(path).close()
    with sqlite3.connect(path) as later:
        later.execute("UPDATE alembic_version SET version_num = '9999'")
    later.close()
    content = path.read_bytes()

    with pytest.raises(SchemaNewer, match="schema 9999 — wanted 0002 or older"):
        open_store(path, clock=ManualClock())

    assert content == path.read_bytes()


def test_a_folder_in_the_place_of_the_file_is_refused(path: Path) -> None:
    path.mkdir()

    with pytest.raises(StoreUnavailable, match="unable to open"):
        open_store(path, clock=ManualClock())

    assert [] == list(path.iterdir())


def test_a_missing_folder_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="No such file or directory"):
        open_store(tmp_path / "nowhere" / "ledger.db", clock=ManualClock())

    assert [] == list(tmp_path.iterdir())


LIMITED = """
import resource, signal, sys
from pathlib import Path
from kt_ledger.clock import ManualClock
from kt_ledger.records import InstanceRow
from kt_ledger.store import StoreUnavailable
from kt_ledger.store.sqlite import open_store

path, limit_bytes, rows = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
kept = 0
try:
    store = open_store(path, clock=ManualClock())
    for n in range(rows):
        store.add_instance(InstanceRow(id=str(n), name=str(n), kind="k", adapter="x" * 4000, created_at_ns=1))
        kept += 1
except StoreUnavailable as refused:
    print(kept, refused)
"""


def limited(path: Path, limit_bytes: int, rows: int) -> str:
    """Open and fill a ledger in a process whose files cannot grow: what a full disk or a quota looks like."""
    return subprocess.run(
        [sys.executable, "-c", LIMITED, str(path), str(limit_bytes), str(rows)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    ).stdout


@pytest.mark.parametrize("limit_bytes", [0, 4096, 20_000])
def test_a_ledger_that_cannot_be_made_leaves_nothing_behind(path: Path, limit_bytes: int) -> None:
    said = limited(path, limit_bytes, 0)

    assert said.startswith("0 ledger ")
    assert "nothing of this change was kept" in said
    assert [] == list(path.parent.iterdir())


def test_a_disk_that_fills_up_costs_the_change_at_hand_and_nothing_before(path: Path) -> None:
    said = limited(path, 300_000, 1000)

    kept = int(said.split()[0])
    store = opened(path)
    assert 0 < kept < 1000
    assert "nothing of this change was kept" in said
    assert kept == len(store.instances())
    store.close()


def test_an_empty_file_left_by_a_killed_start_becomes_a_ledger(path: Path) -> None:
    path.touch(mode=0o644)

    store = opened(path)

    assert [] == store.instances()
    assert 0o600 == mode(path)
    store.close()


def test_a_copy_taken_after_closing_is_a_whole_ledger(path: Path, tmp_path: Path) -> None:
    store = opened(path)
    store.add_instance(InstanceRow(id="i", name="n", kind="k", adapter="{}", created_at_ns=1))
    store.close()
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)

    again = opened(copy)

    assert ["n"] == [row.name for row in again.instances()]
    again.close()


@pytest.mark.parametrize("known", [True, False], ids=["up to date", "new"])
def test_where_nothing_is_old_neither_a_migration_tool_nor_another_dialect_is_imported(
    path: Path, known: bool
) -> None:
    if known:
        opened(path).close()
    code = (
        "import sys; from pathlib import Path; from kt_ledger.clock import ManualClock\n"
        "from kt_ledger.store.sqlite import open_store\n"
        "open_store(Path(sys.argv[1]), clock=ManualClock()).close()\n"
        "sys.exit(bool({'alembic', 'sqlalchemy.dialects.postgresql'} & sys.modules.keys()))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )

    assert 0 == done.returncode


@pytest.fixture
def first_ledger(path: Path) -> Path:
    """A ledger as revision 0001 left it: its own dump, made by that code."""
    dump = Path(__file__).parents[3] / "fixtures/ledger/0001.sql"
    with sqlite3.connect(path) as old:
        old.executescript(dump.read_text())
    old.close()
    return path


def test_a_first_ledger_is_brought_here_with_all_it_holds(first_ledger: Path) -> None:
    store = opened(first_ledger)

    row = store.instance("bot")
    assert row is not None
    assert ("i1", State.RUNNING, 18001, None, None) == (row.id, row.state, row.port, row.restart, row.memory)
    assert [State.STARTING, State.RUNNING] == [one.new_state for one in store.transitions("i1")]
    assert 10 + 2**64 - 1 == store.totals("i1")[Source.ENGINE_OBSERVED].input_tokens
    assert {"gap": 1} == store.notes("i1").counts
    assert ["x1", "x2", None] == [usage.key if usage else None for _, usage in store.recent_calls("i1", 9)]
    assert [] == store.events()
    store.close()


def test_an_old_ledger_goes_on_working_once_it_is_here(first_ledger: Path) -> None:
    opened(first_ledger).close()
    store = opened(first_ledger)

    store.set_restart("i1", {"count": 1})
    seq = store.add_event("note", "i1", {}, 1)

    assert 1 == seq
    row = store.instance("bot")
    assert row is not None
    assert {"count": 1} == row.restart
    with store.engine.connect() as connection:
        assert [] == compare_metadata(MigrationContext.configure(connection), schema.metadata)
    store.close()


def test_an_upgrade_that_cannot_be_finished_leaves_the_old_ledger(first_ledger: Path) -> None:
    with sqlite3.connect(first_ledger) as old:
        old.execute("CREATE TABLE engine_events (theirs)")
    old.close()

    with pytest.raises((StoreUnavailable, sa.exc.DatabaseError)):
        opened(first_ledger)

    with sqlite3.connect(first_ledger) as left:
        assert ("0001",) == left.execute("SELECT version_num FROM alembic_version").fetchone()
        assert "restart" not in {row[1] for row in left.execute("PRAGMA table_info(instances)")}
    left.close()
