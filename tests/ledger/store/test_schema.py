from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from kt_ledger import store as store_room
from kt_ledger.clock import ManualClock
from kt_ledger.store import opening, schema
from kt_ledger.store.sqlite import SqliteStore


def test_the_migrations_end_where_the_tables_say(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "ledger.db", clock=ManualClock())

    with store.engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), schema.metadata)
        made = set(connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'index'"))

    assert [] == differences
    partial = {name for name, sql in made if sql and "WHERE" in sql}
    assert {
        "instances_live_name",
        "runs_unended",
        "exchanges_in_flight",
        "exchanges_limited",
        "engine_events_lasting",
    } == partial
    store.close()


def everything_in(connection: Connection) -> tuple[list[str], object, object]:
    """Return the text of each table and index in the order of their making, the revision, and whose file it is."""
    made = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master ORDER BY tbl_name, rowid")
    texts = [f"{name}: {' '.join((text or '').split())}" for name, text in made]
    revisions = connection.exec_driver_sql("SELECT version_num FROM alembic_version").all()
    return texts, revisions, connection.exec_driver_sql("PRAGMA application_id").all()


def test_a_new_ledger_is_what_all_migrations_make_of_an_empty_file(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "ledger.db", clock=ManualClock())
    migrated = create_engine(f"sqlite:///{tmp_path / 'migrated.db'}")

    with migrated.connect() as connection:
        opening.migrate(connection)
        wanted = everything_in(connection)

    with store.engine.connect() as connection:
        assert wanted == everything_in(connection)
    migrated.dispose()
    store.close()


def test_the_known_revisions_are_those_in_the_folder() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(store_room.__file__).with_name("migrations")))

    revisions = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]

    assert list(schema.REVISIONS) == revisions[::-1]


def test_the_same_tables_can_be_made_in_postgresql() -> None:
    dialect = postgresql.dialect()

    for table in schema.metadata.sorted_tables:
        assert "CREATE TABLE" in str(CreateTable(table).compile(dialect=dialect))
        for index in table.indexes:
            partial = index.dialect_options["sqlite"]["where"] is not None
            assert partial == (" WHERE " in str(CreateIndex(index).compile(dialect=dialect)))
    assert "NUMERIC(60, 0)" in str(CreateTable(schema.events).compile(dialect=dialect))
