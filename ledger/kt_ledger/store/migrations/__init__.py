"""How a ledger file gets from one schema to the next: Alembic revisions, run by `opening` on the one connection."""
