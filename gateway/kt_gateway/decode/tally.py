"""The sum of an answer's findings: the last valid usage wins, whatever stands before or after it.

Where a dialect sends its usage in pieces, later members replace earlier ones, key by key; null replaces nothing.
"""

from typing import Any

from kt_gateway.decode.finding import Finding
from kt_gateway.decode.shape import Measured, Shape
from kt_gateway.decode.usage import measure

WAITING_LIMIT = 16
"""How many usage objects wait to be measured."""


class Tally:
    """Takes findings in order and keeps what the record needs."""

    def __init__(self, shape: Shape, *, overlays: bool = False) -> None:
        self._shape = shape
        self._overlaid: dict[str, Any] | None = {} if overlays else None
        self._aside: tuple[dict[str, Any], Measured] | None = None
        self._main: tuple[dict[str, Any], Measured] | None = None
        self._unmeasured: dict[str, Any] | None = None
        self._waiting: list[
            dict[str, Any]
        ] = []  # not measured yet: where usage comes with each chunk, few need be
        self.model: str | None = None
        self.request_id: str | None = None
        self.service_tier: str | None = None
        self.error = False
        self.finished = False
        self.done = False  # the dialect's terminal event was seen
        self.deferred = False  # the last word is that the work is not done yet
        self.repeated = False  # some object named a member twice: which one counts is anybody's guess
        self.documents = 0
        self.usage_events = 0  # events that exist only to report usage
        self.spoke_at_ns: int | None = None

    def take(self, finding: Finding, *, mono_ns: int) -> None:
        """Add what one document says; `mono_ns` is when its last byte came."""
        self.documents += 1
        self.usage_events += finding.only_usage
        self.model = finding.model or self.model
        self.request_id = self.request_id or finding.request_id
        self.service_tier = finding.service_tier or self.service_tier
        self.error = self.error or finding.error
        self.finished = self.finished or finding.finished
        self.deferred = finding.deferred
        if finding.spoke and self.spoke_at_ns is None:
            self.spoke_at_ns = mono_ns
        if finding.usage is not None:
            self._waiting.append(finding.usage)
            if self._overlaid is not None or len(self._waiting) >= WAITING_LIMIT:
                self._weigh()
        if finding.usage_aside is not None:
            self._aside = self._better(finding.usage_aside) or self._aside

    def _weigh(self) -> None:
        """Measure what came since the last time, from the end: the first that is a measurement counts."""
        waiting, self._waiting = self._waiting, []
        for usage in reversed(waiting):
            measured = self._better(usage)
            if measured is not None:
                self._main = measured
                return
        if waiting:
            self._unmeasured = waiting[-1]

    def _better(self, usage: dict[str, Any]) -> tuple[dict[str, Any], Measured] | None:
        if self._overlaid is not None:
            self._overlaid = {
                **self._overlaid,
                **{name: value for name, value in usage.items() if value is not None},
            }
            usage = self._overlaid
        measured = measure(usage, self._shape)
        if measured is None or measured.all_zero:
            self._unmeasured = usage
            return None
        return usage, measured

    @property
    def measured(self) -> Measured | None:
        """The usage that counts; None where nobody measured anything."""
        self._weigh()
        best = self._main or self._aside
        return best[1] if best else None

    @property
    def usage(self) -> dict[str, Any] | None:
        """The usage object behind `measured`, else one that measured nothing, so that it can be looked at later."""
        self._weigh()
        best = self._main or self._aside
        return best[0] if best else self._unmeasured

    @property
    def knows_the_answer(self) -> bool:
        """Whether the model has begun to speak: model and id have come by then, and ordinary events need no parsing."""
        return self.spoke_at_ns is not None
