"""Settings that take effect at once: read whenever they are needed, checked, or their default."""

from kt_ledger.layout import StateLayout
from kt_manifest import options, settings
from kt_manifest.value_types import Value
from kt_supervisor.engine.instance.restart_policy import Policy
from kt_supervisor.engine.run import launching


def value(files: StateLayout, name: str, key: str) -> Value | None:
    """Return what is set under `key`, else its default.

    Raises:
        MalformedLayer, InvalidValue: somebody wrote something else into the file by hand.
    """
    for entry in launching.entries(files.home(name)):
        if entry.key == key:
            return settings.check_stored(key, entry.value)
    return options.BY_KEY[key].default


def text(files: StateLayout, name: str, key: str) -> str:
    """Return the same for a setting that is one text and has a default."""
    return str(value(files, name, key))


def is_on(files: StateLayout, name: str, key: str) -> bool:
    """Return the same for a switch."""
    return text(files, name, key) == "true"


def restart_policy(files: StateLayout, name: str) -> Policy:
    """Return when an agent that ended by itself is brought back; raises as `value`."""
    return Policy(
        word=text(files, name, options.RESTART_POLICY),
        limit=int(text(files, name, options.RESTART_LIMIT)),
        window_s=float(text(files, name, options.RESTART_WINDOW)),
        reset_after_s=float(text(files, name, options.RESTART_RESET_AFTER)),
    )
