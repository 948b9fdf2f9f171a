"""Our own hooks in mitmproxy's hook system: points at which a lane waits for the journal while others go on.

A `StartHook` subclass that a layer yields pauses that layer alone until every addon's coroutine has returned. The
names of the addon methods follow from the class names: `kt_settle`, `kt_admit`, `kt_hold`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from mitmproxy.proxy import commands, events


@dataclass
class Moment:
    """What a hook is about; `usable` is the answer of `kt_admit`, `synced` that of `kt_settle`."""

    instance_id: str
    usable: bool = False
    synced: bool = False


@dataclass
class KtSettleHook(commands.StartHook):
    """The end of an answer is in hand and its close record is written: return once that is durable."""

    data: Moment


@dataclass
class KtAdmitHook(commands.StartHook):
    """A call wants to leave and the journal cannot be written: return once it can, or when waiting is over."""

    data: Moment


class End(Enum):
    """Why a call is not held any longer."""

    LOOK = "the rules have changed: judge it again"
    GONE = "its sender has left"
    EXPIRED = "nobody released it in time"
    FULL = "too many are held already"
    LEAVING = "this gateway makes way for another"


@dataclass
class Wait:
    """A call that is held; `end` is the answer of `kt_hold`."""

    instance_id: str
    since_ns: int  # when it was first held, monotonic
    is_gone: Callable[[], bool]
    end: End = End.LOOK


@dataclass
class KtHoldHook(commands.StartHook):
    """A call wants to leave while its instance is paused: return once it may be judged again, or cannot wait."""

    data: Wait


class GatewayStops(events.Event):
    """This process is about to end: record what is under way and reset its connections."""
