"""What supervision remembers: restart counting, attached memory, when a provider lets us back, and what happened.

Frozen: what `schema` says today may be more; what this made stays what it is.
"""

import sqlalchemy as sa
from alembic import op

from kt_ledger.store.natural import Natural

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

LIMITED = "status IN (429, 503, 529)"
NO_USAGE_UPDATE = "kind != 'usage_update'"


def upgrade() -> None:
    """Add the columns, and the table of what happened."""
    op.add_column("instances", sa.Column("restart", sa.Text))
    op.add_column("instances", sa.Column("memory", sa.Text))
    op.add_column("exchanges", sa.Column("retry_at_ns", Natural))
    op.create_index(
        "exchanges_limited",
        "exchanges",
        ["run_id", "ended_at_ns"],
        sqlite_where=sa.text(LIMITED),
        postgresql_where=sa.text(LIMITED),
    )
    op.create_table(
        "engine_events",
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("at_ns", sa.BigInteger, nullable=False),
        sa.Column("instance_id", sa.Text),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("engine_events_instance", "engine_events", ["instance_id"])
    op.create_index(
        "engine_events_lasting",
        "engine_events",
        ["seq"],
        sqlite_where=sa.text(NO_USAGE_UPDATE),
        postgresql_where=sa.text(NO_USAGE_UPDATE),
    )
    op.create_table(
        "cursors",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("seq", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    """Refuse: a ledger is never thrown away."""
    raise NotImplementedError("an older kt refuses this ledger; restore the backup that was made before")
