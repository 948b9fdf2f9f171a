"""Numbers for names: accounts (an instance) and scopes (an instance's Run and source), looked up once a transaction.

A scope of self-reported events also knows the highest sequence it has counted. That is all the memory that gaps, late
lines and replays need: a sequence above it cannot be a replay, one below it is either one or late.
"""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from kt_ledger.store.schema import accounts, scopes
from kt_ledger.values import Source, UsageEvent


def number_of(inserted: sa.CursorResult[Any]) -> int:
    """Return the number that a row was given."""
    key = inserted.inserted_primary_key
    assert key is not None
    return int(key[0])


@dataclass(slots=True)
class Account:
    """An instance, by number."""

    id: int


@dataclass(slots=True)
class Scope:
    """An instance's Run and source, by number, and how far its sequences have come."""

    id: int
    source: Source
    fresh: bool
    highest: int | None
    zero_seen: bool
    changed: bool = False
    before: int | None = None  # the highest when the transaction began

    def may_hold(self, event: UsageEvent) -> bool:
        """Return whether the store may already hold this event; False only where it certainly does not."""
        if self.fresh:
            return False
        if self.source is Source.ENGINE_OBSERVED:
            return True
        return self.before is not None and int(event.key) <= self.before

    def saw(self, event: UsageEvent) -> bool:
        """Remember the sequence of a new self-reported event; return whether it came late."""
        sequence = int(event.key)
        if sequence == 0:
            self.zero_seen = self.changed = True
        if self.highest is not None and sequence < self.highest:
            return True
        self.highest = sequence
        self.changed = True
        return False


class Interning:
    """The accounts and scopes of one transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        self._accounts: dict[str, Account] = {}
        self._scopes: dict[tuple[str, str | None, Source], Scope] = {}

    def account(self, instance_id: str) -> Account:
        """Return the account of an instance, made if there is none."""
        known = self._accounts.get(instance_id)
        if known is None:
            row = self._connection.execute(
                sa.select(accounts.c.id).where(accounts.c.instance_id == instance_id)
            ).first()
            if row is None:
                made = self._connection.execute(sa.insert(accounts).values(instance_id=instance_id))
                known = Account(number_of(made))
            else:
                known = Account(int(row.id))
            self._accounts[instance_id] = known
        return known

    def place(self, event: UsageEvent) -> tuple[Account, Scope]:
        """Return the account and scope that an event belongs to, made if there are none."""
        account = self.account(event.instance_id)
        key = (event.instance_id, event.run_id, event.source)
        known = self._scopes.get(key)
        if known is None:
            known = self._scopes[key] = self._scope(account, event.run_id or "", event.source)
        return account, known

    def _scope(self, account: Account, run_id: str, source: Source) -> Scope:
        row = self._connection.execute(
            sa.select(scopes).where(
                scopes.c.account == account.id, scopes.c.run_id == run_id, scopes.c.source == source.value
            )
        ).first()
        if row is not None:
            return Scope(int(row.id), source, False, row.highest, row.zero_seen, before=row.highest)
        made = self._connection.execute(
            sa.insert(scopes).values(account=account.id, run_id=run_id, source=source.value, zero_seen=False)
        )
        return Scope(number_of(made), source, True, None, False)

    def write_scopes(self) -> None:
        """Write how far the sequences have come, before the commit."""
        for scope in self._scopes.values():
            if scope.changed:
                self._connection.execute(
                    sa.update(scopes)
                    .where(scopes.c.id == scope.id)
                    .values(highest=scope.highest, zero_seen=scope.zero_seen)
                )
