"""Commands that run beside an agent, with its environment and in its folder: the adapter's own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a command that ran beside the agent ended."""

    code: int | None
    signal: int | None
    timed_out: bool
    last_lines: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Self:
        """Read the keeper's event."""
        return cls(
            code=facts.get("code"),
            signal=facts.get("signal"),
            timed_out=bool(facts.get("timed_out")),
            last_lines=tuple(map(str, facts.get("last_lines") or ())),
        )

    @property
    def succeeded(self) -> bool:
        """Whether it ended with 0 in time."""
        return self.code == 0 and not self.timed_out

    def describe(self) -> str:
        """Return it in words."""
        how = "took too long" if self.timed_out else f"ended with code {self.code}"
        if self.signal is not None and not self.timed_out:
            how = f"was ended by signal {self.signal}"
        return how + (f": {self.last_lines[-1]}" if self.last_lines else "")
