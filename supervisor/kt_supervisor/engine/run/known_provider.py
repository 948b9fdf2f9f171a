"""The provider of an instance as far as it is known without a caller: at the engine's start, at a rotation."""

from collections.abc import Mapping, Sequence

from kt_ledger.layout import StateLayout
from kt_manifest.configuration import options, secrets, settings
from kt_manifest.configuration.layers import Entry
from kt_supervisor.engine.gateway import metering
from kt_supervisor.engine.gateway.metering import Upstream


def find(
    files: StateLayout, entries: Sequence[Entry], *, environment: Mapping[str, str], keyring: bool = True
) -> Upstream | None:
    """Return the provider of an instance as far as it is known without a caller; None without one.

    A key that cannot be resolved now is `key_missing`. Raises what `settings.check` raises.
    Without `keyring`, which takes a process and may take seconds, a key that is there alone counts as missing.
    """
    wanted = {entry.key: entry.value for entry in entries if entry.key in metering.KEYS}
    key_missing = False
    for key, value in list(wanted.items()):
        try:
            resolved = secrets.resolve(
                str(value), environment=environment, secrets_file=files.secrets, keyring=keyring
            )
            wanted[key] = settings.check_stored(key, resolved)
        except secrets.SecretUnresolved:
            key_missing |= key == options.UPSTREAM_API_KEY
            del wanted[key]
    return metering.upstream(wanted, key_missing=key_missing)
