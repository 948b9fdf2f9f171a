"""What an adapter says about being tested (`[kt.test]`): only the Conformance Test Kit reads it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

NONCE = "{nonce}"
PATH = "{path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How the kit gets an agent to work.

    `args` stand behind the agent's own at every start by the kit; `stream`, `crash` and `dump` behind those, where a
    section wants streamed calls, an end with a failure, or to see what the agent was given (`{path}` is where it writes
    that). `say` is sent once the agent runs, `settings` are set before it is started. `input_tokens` and
    `output_tokens` are what one life of it must report. `outside` is what it may write outside of its isolated folders,
    relative to its home.
    """

    args: tuple[str, ...] = ()
    say: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    stream: tuple[str, ...] | None = None
    crash: tuple[str, ...] | None = None
    dump: tuple[str, ...] | None = None
    outside: tuple[str, ...] = ()
    ends_when_done: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None
