"""Opening a ledger file: one connection, private from birth, at our schema, or a clear refusal that changed nothing."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.pool import StaticPool
from sqlalchemy.schema import CreateIndex, CreateTable

from kt_ledger.store import SchemaNewer, StoreUnavailable, schema

_MISTAKES = (sa.exc.IntegrityError, sa.exc.ProgrammingError, sa.exc.DataError)
"""Kinds of DatabaseError that are our own fault."""

_BUSY_S = 1.0
_CACHE_KIB = 16384
_CHECKPOINT_PAGES = 4000  # 16 MB: four times the default, so that a busy ledger syncs its file less often
_WAL_LIMIT_BYTES = 64 << 20
_MIGRATIONS = Path(__file__).with_name("migrations")

_ADVICE = {
    # a part of SQLite's message -> what to do (https://sqlite.org/rescode.html, read 2026-11-30)
    "locked": "another process has it open: stop that one (`kt engine status` names the engine)",
    "not a database": "move the file away; it was left as it is",
    "malformed": "the file is damaged: keep a copy and restore a backup",
    "full": "free some space on this disk; nothing of this change was kept",
    "readonly": "make the file and its folder writable for this user",
    "unable to open": "check that the folder exists and that this user may write in it",
    "i/o": "check the disk and its quota; nothing of this change was kept",
}


@contextmanager
def translated(path: Path, wanted: str) -> Iterator[None]:
    """Turn what SQLite and the file system raise into StoreUnavailable: got, wanted, what to do."""
    try:
        yield
    except (sa.exc.DatabaseError, sqlite3.DatabaseError, OSError) as error:
        if isinstance(error, _MISTAKES):
            raise
        got = str(getattr(error, "orig", None) or error)
        advice = next((todo for part, todo in _ADVICE.items() if part in got.lower()), "see the message")
        raise StoreUnavailable(f"ledger {path}: {got} — wanted to {wanted}; {advice}") from error


def connect(path: Path) -> sa.Connection:
    """Return the one connection to the ledger at `path`, made and migrated as needed.

    Raises:
        SchemaNewer: a later kt has written the file.
        StoreUnavailable: it cannot be opened, is no ledger, or cannot be brought to our schema. A file that was not
            there before is not there afterwards either; one that was is as it was.
    """
    with translated(path, "open it"):
        fresh = _create(path)
    connection: sa.Connection | None = None
    try:
        with translated(path, "open it"):
            connection = _engine(path).connect()
            _prepare(connection, path, fresh=fresh)
    except BaseException as error:
        if connection is not None:
            dispose(connection)
        # Locked: another process was quicker to fill the file that we made; it is its ledger now.
        if fresh and "locked" not in str(error):
            _remove(path)
        raise
    return connection


def dispose(connection: sa.Connection) -> None:
    """Close the connection and, with it, the file."""
    connection.close()
    connection.engine.dispose()


def _create(path: Path) -> bool:
    """Make an empty file of mode 0600, so that SQLite never makes one with the umask's; say whether it is new."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return False
    return True


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _engine(path: Path) -> sa.Engine:
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(path)),
        poolclass=StaticPool,
        # The driver's own BEGIN comes late and is deferred; ours is explicit, below.
        connect_args={"isolation_level": None, "timeout": _BUSY_S, "cached_statements": 256},
    )
    sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def _prepare(connection: sa.Connection, path: Path, *, fresh: bool) -> None:
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    # Before anything else touches the file: with exclusive locking a WAL needs no shared memory, and a second
    # connection, which the WAL-reset bug of 3.7.0-3.51.2 needs, cannot exist (https://sqlite.org/wal.html, 2.3, 11).
    driver.execute("PRAGMA locking_mode=EXCLUSIVE")
    version = _version(driver, path)
    if version is not None and version not in schema.REVISIONS:
        raise SchemaNewer(
            f"ledger {path}: schema {version} — wanted {schema.HEAD} or older; a later kt has written it: "
            "run that one, or point KTESIO_STATE_DIR elsewhere; nothing was changed"
        )
    if not fresh:
        path.chmod(0o600)  # a restored backup may have brought the umask's mode
    _configure(driver, path)
    if version is None:
        _fill(connection)
    elif version != schema.HEAD:
        migrate(connection)


def _version(driver: sqlite3.Connection, path: Path) -> str | None:
    """Return the schema's revision, None for an empty file; reads only."""
    tables = driver.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if not tables:
        return None
    if driver.execute("PRAGMA application_id").fetchone()[0] != schema.APPLICATION_ID:
        raise StoreUnavailable(
            f"ledger {path}: a database of some other program — wanted a ledger of kt; "
            "move the file away, or point KTESIO_STATE_DIR elsewhere; it was left as it is"
        )
    return str(driver.execute("SELECT version_num FROM alembic_version").fetchone()[0])


def _configure(driver: sqlite3.Connection, path: Path) -> None:
    journal = driver.execute("PRAGMA journal_mode=WAL").fetchone()[0]
    if journal != "wal":
        raise StoreUnavailable(
            f"ledger {path}: journal mode {journal} — wanted wal; use a file system that SQLite can write-ahead on"
        )
    for setting in (
        "synchronous=FULL",
        "fullfsync=ON",  # macOS: a plain fsync stays in the drive's cache; elsewhere it says nothing
        "foreign_keys=ON",
        f"cache_size=-{_CACHE_KIB}",
        f"wal_autocheckpoint={_CHECKPOINT_PAGES}",
        f"journal_size_limit={_WAL_LIMIT_BYTES}",
    ):
        driver.execute(f"PRAGMA {setting}")


def _fill(connection: sa.Connection) -> None:
    """Make the tables of HEAD at once, in one transaction: what all migrations make of an empty file, and sooner."""
    with connection.begin():
        for table in (*schema.metadata.sorted_tables, schema.revision_mark):
            connection.execute(CreateTable(table))
            # A set has no order, and of two indexes that serve equally SQLite takes one by the order of their making.
            for index in sorted(table.indexes, key=lambda index: str(index.name)):
                connection.execute(CreateIndex(index))
        connection.execute(sa.insert(schema.revision_mark).values(version_num=schema.HEAD))
        _sign(connection)


def migrate(connection: sa.Connection) -> None:
    """Bring the file to HEAD in one transaction; Alembic is imported only when there is something to do."""
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    script = ScriptDirectory.from_config(config)
    with connection.begin():
        with EnvironmentContext(
            config,
            script,
            fn=lambda revision, _: script._upgrade_revs("head", revision),
        ) as environment:
            environment.configure(connection=connection, target_metadata=schema.metadata)
            with environment.begin_transaction():
                environment.run_migrations()
        _sign(connection)


def _sign(connection: sa.Connection) -> None:
    connection.exec_driver_sql(f"PRAGMA application_id={schema.APPLICATION_ID}")
