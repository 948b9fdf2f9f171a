"""An agent that its keeper has frozen because the disk is nearly full: told in events, and shown while it lasts."""

from kt_ledger.event_documents import DISK
from kt_supervisor.engine.parts import Parts

WAITS = (
    "it is frozen: less than the free-space floor is left on the disk; free some, and it goes on by itself"
)


class DiskWait:
    """One instance's. `low` is what its keeper last said."""

    def __init__(self, parts: Parts, instance_id: str, name: str) -> None:
        self.low = False
        self._parts = parts
        self._id = instance_id
        self._name = name

    @property
    def waits_for(self) -> str | None:
        """What is told of it; None where it does not wait."""
        return WAITS if self.low else None

    def changed(self, low: bool) -> None:
        """Take what its keeper says, and keep it as an event."""
        self.low = low
        what = "waits: the disk is nearly full" if low else "goes on: there is room on the disk again"
        at_ns = self._parts.clock.wall_ns()
        telling = self._parts.writer.do(lambda store: store.add_event(DISK, self._id, {"what": what}, at_ns))
        self._parts.tasks.start(f"disk of {self._name}", telling)
