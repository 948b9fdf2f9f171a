"""One exchange on its way through a lane: what is known of it, and the bytes that wait to be sent to the agent."""

from dataclasses import dataclass, field

from kt_gateway.http1 import framing, head
from kt_gateway.http1.door import Door, Entry
from kt_gateway.mitm.guard import GuardedExchange


@dataclass(slots=True, kw_only=True)
class Call:
    """The state of one exchange; its lane changes it."""

    start: head.RequestStart
    entry: Entry
    door: Door  # the rules that it was judged by
    exchange: GuardedExchange
    close: bool  # whether the agent's connection ends behind the answer
    collected: bytearray | None = None  # the request's body while the exchange wants to see it whole
    as_it_came: bytes | None = None  # the request's body where we changed it
    held_since_ns: int | None = None  # when it first had to wait for a resume, monotonic
    opened: bool = False  # its open record is written
    launched: bool = False  # the upstream has our request, or is being asked for a connection for it
    request_chunked: bool = False  # its body goes on chunked
    buffer: bytearray = field(default_factory=bytearray)  # an incomplete response head
    answer: head.ResponseStart | None = None
    body: framing.Body | None = None  # the response's; None too where it has none
    chunked: bool = False  # how the answer is framed towards the agent
    answered: bool = False  # something of a final answer was sent to the agent
    out: bytearray = field(default_factory=bytearray)  # for the agent, in this turn
    head_only: bool = False  # `out` holds the response's head and nothing else
    clean: bool = False  # settled, and the answer may be given its end

    def put(self, data: bytes) -> None:
        """Frame body bytes for the agent."""
        if data:
            self.out += framing.chunk(data) if self.chunked else data
            self.head_only = False

    def expects_continue(self) -> bool:
        """Whether the agent waits for a 100 before it sends the body."""
        if self.start.minor == 0:
            return False
        return any(value.lower() == b"100-continue" for value in head.values(self.start.headers, b"expect"))
