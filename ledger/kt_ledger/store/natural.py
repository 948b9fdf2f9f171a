"""A column for natural numbers of any size: what a provider may report is larger than SQLite's integers."""

from typing import Any

from sqlalchemy import Numeric
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, UserDefinedType

SQLITE_INTEGER_LIMIT = 2**63
"""SQLite's integers end one below this (https://sqlite.org/datatype3.html, section 2, read 2026-11-30)."""


class _Untyped(UserDefinedType[Any]):
    """A column that keeps what it is given: BLOB affinity converts nothing (datatype3.html, section 3.1)."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        """Return the declared type."""
        return "BLOB"


def stored(number: int | None) -> int | str | None:
    """Return how a natural number of any size is bound: an integer where SQLite has one, else decimal text."""
    if number is None or number < SQLITE_INTEGER_LIMIT:
        return number
    return str(number)


class Natural(TypeDecorator[int]):
    """A natural number without an upper end; never wrapped, never rounded, never clamped."""

    impl = _Untyped
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        """Return the column type: exact numerics where there are any, else an untyped column."""
        if dialect.name == "sqlite":
            return dialect.type_descriptor(_Untyped())
        return dialect.type_descriptor(Numeric(60, 0))

    def process_bind_param(self, value: int | None, dialect: Dialect) -> Any:  # noqa: ARG002
        """Return the value as the driver takes it."""
        return stored(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> int | None:  # noqa: ARG002
        """Return the value as a Python integer."""
        return None if value is None else int(value)
