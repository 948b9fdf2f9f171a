"""The ledger's tables, as SQLAlchemy Core says them: a new file gets them at once, an old one by `migrations/`.

Instances are interned as `accounts` and (instance, Run, source) as `scopes`, so that an event row names its scope by
one integer and the index that makes counting idempotent stays small. Accounts are no foreign keys into `instances`:
usage of an instance that nobody knows any more must still find a row.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateIndex
from sqlalchemy.sql.compiler import DDLCompiler

from kt_ledger.store.natural import Natural
from kt_ledger.values import UNITS

REVISIONS = ("0001", "0002")
"""All migrations, oldest first."""

HEAD = REVISIONS[-1]
"""The migration that `metadata` below is the result of."""

APPLICATION_ID = 0x6B744C31
"""`ktL1` in the file's header (`PRAGMA application_id`): how a ledger is told from somebody else's database."""

LIMITED = "status IN (429, 503, 529)"
"""The answers by which a provider says "later": too many requests, unavailable, overloaded.

Text, not parameters: SQLite takes a partial index only where the query says the same words
(https://sqlite.org/partialindex.html, section 3).
"""

IN_FLIGHT = "exchanges.state = 'in_flight'"
"""The calls under way: a handful among millions, found by their own index."""

LASTING = "kind != 'usage_update'"
"""The events that say what nothing else says: usage is summed up in the roll-ups anyway."""


@compiles(CreateIndex, "postgresql")
def _partial_as_in_sqlite(create: CreateIndex, compiler: DDLCompiler, **options: Any) -> str:
    """Make an index as partial in PostgreSQL; to say `postgresql_where` below would import that dialect each time."""
    of = create.element.dialect_options
    of["postgresql"]["where"] = of["sqlite"]["where"]
    return str(compiler.visit_create_index(create, **options))  # type: ignore[no-untyped-call]


metadata = sa.MetaData()

revision_mark = sa.Table(
    "alembic_version",  # Alembic's own table, as it makes it; apart, since it is no part of what it compares
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)

instances = sa.Table(
    "instances",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("adapter", sa.Text, nullable=False),
    sa.Column("port", sa.Integer),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("desired", sa.Text, nullable=False),
    sa.Column("run_id", sa.Text),
    sa.Column("cause", sa.Text),
    sa.Column("created_at_ns", sa.BigInteger, nullable=False),
    sa.Column("removed_at_ns", sa.BigInteger),
    sa.Column("restart", sa.Text),  # the restart machine's own JSON: opaque here
    sa.Column("memory", sa.Text),  # the kind of memory attached: opaque here
)
sa.Index(
    "instances_live_name",
    instances.c.name,
    unique=True,
    sqlite_where=instances.c.removed_at_ns.is_(None),
)

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("instance_id", sa.Text, sa.ForeignKey("instances.id"), nullable=False),
    sa.Column("token", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("keeper_pid", sa.BigInteger),
    sa.Column("keeper_start_ticks", sa.BigInteger),
    sa.Column("agent_pid", sa.BigInteger),
    sa.Column("agent_start_ticks", sa.BigInteger),
    sa.Column("boot_id", sa.Text),
    sa.Column("started_at_ns", sa.BigInteger, nullable=False),
    sa.Column("ended_at_ns", sa.BigInteger),
    sa.Column("exit_code", sa.BigInteger),
    sa.Column("exit_signal", sa.BigInteger),
)
sa.Index(
    "runs_unended",
    runs.c.id,
    sqlite_where=runs.c.state != "ended",
)

transitions = sa.Table(
    "transitions",
    metadata,
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("instance_id", sa.Text, sa.ForeignKey("instances.id"), nullable=False),
    sa.Column("prior_state", sa.Text, nullable=False),
    sa.Column("new_state", sa.Text, nullable=False),
    sa.Column("cause", sa.Text, nullable=False),
    sa.Column("at_ns", sa.BigInteger, nullable=False),
)
sa.Index("transitions_instance", transitions.c.instance_id)

engine_events = sa.Table(
    "engine_events",  # what happened, in one order; `events` below are events of usage
    metadata,
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("at_ns", sa.BigInteger, nullable=False),
    sa.Column("instance_id", sa.Text),  # no foreign key: usage may arrive of an instance that nobody knows
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("document", sa.Text, nullable=False),
    # A number is never given twice, whatever retention deletes (https://sqlite.org/autoinc.html, section 3).
    sqlite_autoincrement=True,
)
sa.Index("engine_events_instance", engine_events.c.instance_id)
sa.Index(
    "engine_events_lasting",
    engine_events.c.seq,
    sqlite_where=sa.text(LASTING),
)

cursors = sa.Table(
    "cursors",  # how far somebody has come in the engine's events
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("seq", sa.BigInteger, nullable=False),
)

logs = sa.Table(
    "logs",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("log", sa.Text, nullable=False, unique=True),
    sa.Column("segment", sa.BigInteger, nullable=False),
    sa.Column("offset", sa.BigInteger, nullable=False),
    sa.Column("skipping", sa.Boolean, nullable=False),
)

accounts = sa.Table(
    "accounts",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("instance_id", sa.Text, nullable=False, unique=True),
)

scopes = sa.Table(
    "scopes",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("account", sa.Integer, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column(
        "run_id", sa.Text, nullable=False
    ),  # "" where the event names no Run: SQL's NULLs are never equal
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("highest", Natural),  # sentinel sequences only: the highest counted ...
    sa.Column("zero_seen", sa.Boolean, nullable=False),  # ... and whether they began at 0
    sa.UniqueConstraint("account", "run_id", "source", name="scopes_key"),
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("account", sa.Integer, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column("scope", sa.Integer, sa.ForeignKey("scopes.id"), nullable=False),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("id", sa.Text, nullable=False),
    *(sa.Column(unit, Natural) for unit in UNITS),
    sa.Column("completeness", sa.Text, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("model_asked", sa.Text),
    sa.Column("model_answered", sa.Text),
    sa.Column("provider", sa.Text),
    sa.Column("service_tier", sa.Text),
    sa.Column("request_id", sa.Text),
    sa.Column("raw_usage", sa.Text),
    sa.Column("started_at_ns", sa.BigInteger, nullable=False),
    sa.Column("ended_at_ns", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("scope", "key", name="events_key"),
)
sa.Index("events_account", events.c.account)

exchanges = sa.Table(
    "exchanges",
    metadata,
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("account", sa.Integer, sa.ForeignKey("accounts.id"), nullable=False),
    sa.Column("log", sa.Integer, sa.ForeignKey("logs.id"), nullable=False),
    sa.Column("rank", sa.SmallInteger, nullable=False),  # how much is known: an exchange only ever climbs
    sa.Column("run_id", sa.Text),
    sa.Column("sent", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("method", sa.Text, nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("family", sa.Text, nullable=False),
    sa.Column("status", sa.Integer),
    sa.Column("stream", sa.Boolean),
    sa.Column("reason", sa.Text),
    sa.Column("model_asked", sa.Text),
    sa.Column("max_tokens", Natural),
    sa.Column("choices", Natural),
    sa.Column("request_bytes", Natural),
    sa.Column("response_bytes", Natural),
    sa.Column("usage_asked_by_us", sa.Boolean, nullable=False),
    sa.Column("unsynced", sa.Boolean, nullable=False),
    sa.Column("retry_count", Natural),
    sa.Column("started_at_ns", sa.BigInteger, nullable=False),
    sa.Column("ended_at_ns", sa.BigInteger),
    sa.Column("first_token_ns", Natural),
    sa.Column("latency_ns", Natural),
    sa.Column("retry_at_ns", Natural),
)
sa.Index("exchanges_account", exchanges.c.account)
sa.Index(
    "exchanges_limited",
    exchanges.c.run_id,
    exchanges.c.ended_at_ns,
    sqlite_where=sa.text(LIMITED),
)
sa.Index(
    "exchanges_in_flight",
    exchanges.c.account,
    sqlite_where=exchanges.c.state == "in_flight",
)


def _sums() -> list[sa.Column[Any]]:
    """Return the columns that every roll-up has: how many events of which kind, and the exact sum of each unit."""
    numbers = [
        sa.Column(n, sa.BigInteger, nullable=False) for n in ("events", "exact", "partial", "estimated")
    ]
    unmeasured = sa.Column(
        "unmeasured", sa.Text, nullable=False
    )  # JSON: reason -> number of events without counts
    return [*numbers, unmeasured, *(sa.Column(unit, Natural) for unit in UNITS)]


run_totals = sa.Table(
    "run_totals",
    metadata,
    sa.Column("scope", sa.Integer, sa.ForeignKey("scopes.id"), primary_key=True),
    *_sums(),
)
instance_totals = sa.Table(
    "instance_totals",
    metadata,
    sa.Column("account", sa.Integer, sa.ForeignKey("accounts.id"), primary_key=True),
    sa.Column("source", sa.Text, primary_key=True),
    *_sums(),
)
bucket_totals = sa.Table(
    "bucket_totals",
    metadata,
    sa.Column("account", sa.Integer, sa.ForeignKey("accounts.id"), primary_key=True),
    sa.Column("source", sa.Text, primary_key=True),
    sa.Column("model", sa.Text, primary_key=True),  # as answered, else as asked, else ""
    sa.Column("bucket", sa.BigInteger, primary_key=True),  # quarter hours since 1970 UTC, by the call's start
    *_sums(),
)

note_totals = sa.Table(
    "note_totals",
    metadata,
    sa.Column("account", sa.Integer, sa.ForeignKey("accounts.id"), primary_key=True),
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("count", Natural, nullable=False),
    sa.Column("latest", sa.Text, nullable=False),
    sa.Column("latest_at_ns", sa.BigInteger, nullable=False),
)
