"""What every instance works with: the few long-lived parts of one engine."""

from dataclasses import dataclass

from kt_ledger.clock import Clock
from kt_ledger.layout import StateLayout
from kt_supervisor.engine.gateway.journals import Journals
from kt_supervisor.engine.gateway.listeners import Listeners
from kt_supervisor.engine.instance.current_settings import CurrentSettings
from kt_supervisor.engine.instance.restarting import Restarting
from kt_supervisor.engine.output.known_secrets import KnownOfAll
from kt_supervisor.engine.spawn import Spawner
from kt_supervisor.engine.tasks import Tasks
from kt_supervisor.engine.writer import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Shared by reference; each guards itself, and none is locked across a wait for a process."""

    files: StateLayout
    settings: CurrentSettings
    clock: Clock
    writer: Writer
    tasks: Tasks
    spawner: Spawner
    listeners: Listeners
    journals: Journals
    restarting: Restarting
    known: KnownOfAll
