"""The first ledger: instances, Runs, logs and their positions, events, exchanges, roll-ups.

Frozen: what `schema` says today may be more; what this made stays what it is.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from kt_ledger.store.natural import Natural

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

UNITS = (
    "input",
    "cache_read",
    "cache_write_5m",
    "cache_write_1h",
    "output",
    "reasoning",
    "audio_input",
    "audio_output",
    "image_input",
    "image_output",
    "seconds",
    "characters",
    "tool_calls",
)


def upgrade() -> None:
    """Make all tables of the first ledger."""
    _instances()
    _logs()
    _usage()
    _exchanges()
    _rollups()


def downgrade() -> None:
    """Refuse: a ledger is never thrown away."""
    raise NotImplementedError("there is nothing before the first ledger")


def _instances() -> None:
    op.create_table(
        "instances",
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
    )
    op.create_index(
        "instances_live_name",
        "instances",
        ["name"],
        unique=True,
        sqlite_where=sa.text("removed_at_ns IS NULL"),
        postgresql_where=sa.text("removed_at_ns IS NULL"),
    )
    op.create_table(
        "runs",
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
    op.create_index(
        "runs_unended",
        "runs",
        ["id"],
        sqlite_where=sa.text("state != 'ended'"),
        postgresql_where=sa.text("state != 'ended'"),
    )
    op.create_table(
        "transitions",
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("instance_id", sa.Text, sa.ForeignKey("instances.id"), nullable=False),
        sa.Column("prior_state", sa.Text, nullable=False),
        sa.Column("new_state", sa.Text, nullable=False),
        sa.Column("cause", sa.Text, nullable=False),
        sa.Column("at_ns", sa.BigInteger, nullable=False),
    )
    op.create_index("transitions_instance", "transitions", ["instance_id"])


def _logs() -> None:
    op.create_table(
        "logs",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("log", sa.Text, nullable=False, unique=True),
        sa.Column("segment", sa.BigInteger, nullable=False),
        sa.Column("offset", sa.BigInteger, nullable=False),
        sa.Column("skipping", sa.Boolean, nullable=False),
    )
    op.create_table(
        "accounts",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("instance_id", sa.Text, nullable=False, unique=True),
    )
    op.create_table(
        "scopes",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("account", sa.Integer, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("highest", Natural),
        sa.Column("zero_seen", sa.Boolean, nullable=False),
        sa.UniqueConstraint("account", "run_id", "source", name="scopes_key"),
    )


def _usage() -> None:
    op.create_table(
        "events",
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
    op.create_index("events_account", "events", ["account"])


def _exchanges() -> None:
    op.create_table(
        "exchanges",
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("account", sa.Integer, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("log", sa.Integer, sa.ForeignKey("logs.id"), nullable=False),
        sa.Column("rank", sa.SmallInteger, nullable=False),
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
    )
    op.create_index("exchanges_account", "exchanges", ["account"])
    op.create_index(
        "exchanges_in_flight",
        "exchanges",
        ["account"],
        sqlite_where=sa.text("state = 'in_flight'"),
        postgresql_where=sa.text("state = 'in_flight'"),
    )


def _sums() -> list[sa.Column[Any]]:
    numbers = [
        sa.Column(n, sa.BigInteger, nullable=False) for n in ("events", "exact", "partial", "estimated")
    ]
    unmeasured = sa.Column("unmeasured", sa.Text, nullable=False)
    return [*numbers, unmeasured, *(sa.Column(unit, Natural) for unit in UNITS)]


def _rollups() -> None:
    op.create_table(
        "run_totals",
        sa.Column("scope", sa.Integer, sa.ForeignKey("scopes.id"), primary_key=True),
        *_sums(),
    )
    op.create_table(
        "instance_totals",
        sa.Column("account", sa.Integer, sa.ForeignKey("accounts.id"), primary_key=True),
        sa.Column("source", sa.Text, primary_key=True),
        *_sums(),
    )
    op.create_table(
        "bucket_totals",
        sa.Column("account", sa.Integer, sa.ForeignKey("accounts.id"), primary_key=True),
        sa.Column("source", sa.Text, primary_key=True),
        sa.Column("model", sa.Text, primary_key=True),
        sa.Column("bucket", sa.BigInteger, primary_key=True),
        *_sums(),
    )
    op.create_table(
        "note_totals",
        sa.Column("account", sa.Integer, sa.ForeignKey("accounts.id"), primary_key=True),
        sa.Column("run_id", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("count", Natural, nullable=False),
        sa.Column("latest", sa.Text, nullable=False),
        sa.Column("latest_at_ns", sa.BigInteger, nullable=False),
    )
