import pytest
import sqlalchemy as sa

from kt_ledger.store.natural import Natural
from kt_ledger.values import U64_MAX


@pytest.mark.parametrize("number", [None, 0, 1, 2**63 - 1, 2**63, U64_MAX, 10**40])
def test_a_natural_number_of_any_size_comes_back_exactly(number: int | None) -> None:
    engine = sa.create_engine("sqlite://")
    table = sa.Table("t", sa.MetaData(), sa.Column("n", Natural))

    with engine.begin() as connection:
        table.create(connection)
        connection.execute(sa.insert(table), [{"n": number}])
        kept = connection.execute(sa.select(table.c.n)).scalar_one()

    assert number == kept
    engine.dispose()
