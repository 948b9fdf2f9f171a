"""Hooks find the meter of their listener; removed ones finish what they began."""

import asyncio
import socket
from pathlib import Path

import pytest

from kt_addons.dispatcher import Dispatcher
from kt_addons.instance_meter import InstanceMeter
from kt_gateway.exchange.exchange import RequestHead
from kt_gateway.http1.door import RulesInvalid
from kt_gateway.journal.writer import JournalWriter
from kt_gateway.mitm.hooks import Moment
from kt_ledger import clock, ids, journal, messages

ASKED = RequestHead(method="POST", path="/v1/x", query="", headers=())


def listener(instance: str, **more: object) -> messages.Listener:
    facts = {"instance_id": instance, "name": "a", "port": 1, "upstream": "http://127.0.0.1:1/v1", **more}
    return messages.Listener.from_json(facts)


def meter(instance: str, writer: JournalWriter) -> InstanceMeter:
    return InstanceMeter(
        listener(instance),
        endpoint=socket.socket(),
        writer=writer,
        time_source=clock.ManualClock(),
        new_id=ids.new_id,
    )


def records(folder: Path) -> list[journal.Record]:
    found = journal.read((folder / "000001.ktj").read_bytes())
    return [record for record in found if isinstance(record, journal.Record)]


def test_a_hook_reaches_its_own_meter_and_a_removed_one_still_settles(tmp_path: Path) -> None:
    async def work() -> None:
        writer = JournalWriter(tmp_path / "j", header={})
        desk = Dispatcher()
        desk.add(meter("a", writer))
        desk.add(meter("b", writer))
        desk.meters["a"].in_flight = 1
        removed = desk.remove("a")
        moment = Moment("a")

        await desk.kt_settle(moment)

        assert moment.synced
        assert removed.draining
        assert desk.in_flight == 1
        assert desk.meter("a") is removed
        with pytest.raises(KeyError):
            await desk.kt_settle(Moment("nobody"))
        desk.done()
        writer.close()

    asyncio.run(asyncio.wait_for(work(), 20))


def test_rows_of_strangers_are_bounded_and_the_rest_is_counted(tmp_path: Path) -> None:
    async def work() -> None:
        writer = JournalWriter(tmp_path / "j", header={})
        one = meter("a", writer)
        for _ in range(500):
            one.record_local(None, ASKED, 401, "refused_token")  # type: ignore[arg-type]
        one.count("probe", "r")
        one.write_counts()
        writer.close()

    asyncio.run(asyncio.wait_for(work(), 20))

    found = records(tmp_path / "j")
    rows = [record for record in found if record.type == journal.LOCAL]
    notes = {record.fields["kind"]: record.fields["count"] for record in found if record.type == journal.NOTE}
    assert len(rows) + notes["refused_unlisted"] == 500
    assert len(rows) == 200
    assert notes["probe"] == 1


def test_rules_that_cannot_be_kept_change_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        writer = JournalWriter(tmp_path / "j", header={})
        one = meter("a", writer)
        before = one.door
        with pytest.raises(RulesInvalid):
            one.replace(listener("a", upstream="gopher://x"))
        assert one.door is before
        writer.close()

    asyncio.run(asyncio.wait_for(work(), 20))
