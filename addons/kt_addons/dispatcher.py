"""Routes our hooks to the meter of the listener that they come from, and knows meters and sockets by instance.

mitmproxy offers each hook to every addon in turn; with hundreds of meters in its chain every call would pay for all
of them. So the meters stand behind this one addon, which finds theirs by the mode's data.
"""

import socket

from kt_addons.instance_meter import InstanceMeter
from kt_gateway.mitm import mode
from kt_gateway.mitm.hooks import Moment, Wait


class Dispatcher:
    """The one addon of ours in mitmproxy's chain."""

    name = mode.DISPATCHER

    def __init__(self) -> None:
        self.meters: dict[str, InstanceMeter] = {}
        self._leaving: dict[str, InstanceMeter] = {}  # removed, with streams under way

    def add(self, meter: InstanceMeter) -> None:
        """Begin to route to `meter`."""
        self.meters[meter.instance_id] = meter

    def remove(self, instance_id: str) -> InstanceMeter:
        """Take a meter out; its streams under way are still recorded. Raises KeyError."""
        meter = self.meters.pop(instance_id)
        meter.retire()
        self._leaving = {name: other for name, other in self._leaving.items() if other.in_flight}
        self._leaving[instance_id] = meter
        meter.done()
        return meter

    def meter(self, instance_id: str) -> InstanceMeter:
        """Return the meter of an instance that has, or had, a listener."""
        return self.meters.get(instance_id) or self._leaving[instance_id]

    def listening_socket(self, instance_id: str) -> socket.socket:
        """Return the bound socket of an instance."""
        return self.meters[instance_id].endpoint

    @property
    def ports(self) -> set[int]:
        """The ports of all listeners."""
        return {meter.door.listener.port for meter in self.meters.values()}

    @property
    def in_flight(self) -> int:
        """How many exchanges are under way."""
        everyone = [*self.meters.values(), *self._leaving.values()]
        return sum(meter.in_flight for meter in everyone)

    @property
    def held(self) -> int:
        """How many of these wait because their instance is paused."""
        return sum(meter.held for meter in self.meters.values())

    async def kt_settle(self, moment: Moment) -> None:
        """Pass on: an answer's end waits for its record."""
        await self.meter(moment.instance_id).kt_settle(moment)

    async def kt_admit(self, moment: Moment) -> None:
        """Pass on: a call waits for the journal."""
        await self.meter(moment.instance_id).kt_admit(moment)

    async def kt_hold(self, wait: Wait) -> None:
        """Pass on: a call waits for its instance to be resumed."""
        await self.meter(wait.instance_id).kt_hold(wait)

    def done(self) -> None:
        """Let go of all meters."""
        for instance_id in list(self.meters):
            self.remove(instance_id)
