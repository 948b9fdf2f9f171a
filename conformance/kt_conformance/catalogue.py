"""The sections by name, in the order in which they run: the contract's eight, then those that are additive."""

from collections.abc import Callable

from kt_conformance.sections import (
    adoption,
    capability_edges,
    config_mapping,
    interaction,
    isolation_and_updates,
    lifecycle,
    listener_token,
    memory,
    metering_engine_observed,
    metering_self_reported,
    pause,
    restart,
    stop_tree,
)
from kt_conformance.stage import Stage

SECTIONS: dict[str, Callable[[Stage], None]] = {
    "capability_edges": capability_edges.check,
    "lifecycle": lifecycle.check,
    "pause": pause.check,
    "config_mapping": config_mapping.check,
    "metering_self_reported": metering_self_reported.check,
    "metering_engine_observed": metering_engine_observed.check,
    "memory": memory.check,
    "interaction": interaction.check,
    "streamed_observed_metering": metering_engine_observed.check_streams,
    "restart": restart.check,
    "adoption": adoption.check,
    "listener_token": listener_token.check,
    "stop_tree": stop_tree.check,
    "isolation_and_updates": isolation_and_updates.check,
}
CONTRACT = tuple(SECTIONS)[:8]
"""The names that the contract's own readers know."""
