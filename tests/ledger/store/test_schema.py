from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from kt_ledger import store as store_room
from kt_ledger.clock import ManualClock
from kt_ledger.store import schema
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
            assert "CREATE" in str(CreateIndex(index).compile(dialect=dialect))
    assert "NUMERIC(60, 0)" in str(CreateTable(schema.events).compile(dialect=dialect))
