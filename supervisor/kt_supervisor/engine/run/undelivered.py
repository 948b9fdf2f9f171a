"""What to say of settings that nothing carries to the agent; said where they are set, and where a start gets them."""

from collections.abc import Iterable

from kt_manifest.configuration import options
from kt_manifest.contract.snapshot import Adapter


def notices(adapter: Adapter, keys: Iterable[str]) -> list[str]:
    """Return a sentence for each key that only a mapping delivers, and that the adapter maps nowhere."""
    return [
        f"{key} reaches nobody: the adapter (kind {adapter.kind}) maps it nowhere; a variable of the agent is set with "
        "agent.NAME"
        for key in keys
        if key in options.BY_MAPPING and not adapter.maps(key)
    ]
