"""Settings that take effect at once: read whenever they are needed, checked, or their default."""

from kt_ledger.layout import StateLayout
from kt_manifest.configuration import options, settings
from kt_manifest.configuration.value_types import Value
from kt_supervisor.engine.instance.restart_policy import Policy
from kt_supervisor.engine.run import launching


def value(files: StateLayout, name: str, key: str) -> Value | None:
    """Return what is set under `key`, else its default.

    Raises:
        MalformedLayer, InvalidValue: somebody wrote something else into the file by hand.
    """
    return values(files, name, key)[0]


def values(files: StateLayout, name: str, *keys: str) -> list[Value | None]:
    """Return the same for several keys, read at one moment."""
    found = {entry.key: entry.value for entry in launching.entries(files.home(name))}
    return [
        settings.check_stored(key, found[key]) if key in found else options.BY_KEY[key].default
        for key in keys
    ]


def text(files: StateLayout, name: str, key: str) -> str:
    """Return the same for a setting that is one text and has a default."""
    return str(value(files, name, key))


def is_on(files: StateLayout, name: str, key: str) -> bool:
    """Return the same for a switch."""
    return text(files, name, key) == "true"


def restart_policy(files: StateLayout, name: str) -> Policy:
    """Return when an agent that ended by itself is brought back; raises as `value`."""
    keys = (
        options.RESTART_POLICY,
        options.RESTART_LIMIT,
        options.RESTART_WINDOW,
        options.RESTART_RESET_AFTER,
    )
    word, limit, window_s, reset_after_s = map(str, values(files, name, *keys))
    return Policy(word=word, limit=int(limit), window_s=float(window_s), reset_after_s=float(reset_after_s))
