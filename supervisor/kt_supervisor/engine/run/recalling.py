"""The secrets of a Run that somebody else began: what can be found again without the one who asked for its start.

That is what `secrets.toml` and the keyring hold, and what the agent itself was given in its environment, also the keys
there that nobody called a secret; the provider's key is asked of the gateway besides, which uses it (`CurrentRun`). A
value that was in the caller's environment alone and went to a file or a flag of the agent is known to nobody any more.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

from kt_ledger.layout import RunLayout, StateLayout
from kt_ledger.records import InstanceRow
from kt_manifest.configuration import clear_keys, options, secret_syntax, secrets
from kt_manifest.configuration.layers import Entry
from kt_manifest.configuration.value_types import Value
from kt_manifest.contract.snapshot import Adapter, EnvTarget
from kt_manifest.launch import inheritance
from kt_supervisor.engine.run import kernel_view, run_environment, run_records

logger = logging.getLogger(__name__)


def recall(
    files: StateLayout, row: InstanceRow, run: RunLayout, entries: Callable[[], Sequence[Entry]]
) -> frozenset[str]:
    """Return the secrets that are found; settings that make no sense refer to none. Reads files, and may wait.

    `entries` gives what was set for the Run (`CurrentSettings.of_the_run`).
    """
    try:
        settings = {entry.key: entry.value for entry in entries()}
        adapter = Adapter.from_json(row.adapter)
    except Exception as error:
        # Whatever somebody wrote by hand, what the agent prints must still be read.
        logger.warning("the secrets of %s are not known: %s", row.name, type(error).__name__)
        return frozenset()
    wanted = secrets.names(settings.values())
    found = set(secrets.find_all(wanted, environment={}, secrets_file=files.secrets).values())
    found.update(clear_keys.texts(settings))
    agent = kernel_view.look((run_records.read_json(run.record) or {}).get("agent_pid"))
    if agent is not None:
        found.update(_delivered(adapter, settings, agent.env))
    variables = run_environment.load(files, row.id) or {} if agent is None else agent.env
    found.update(value for name, value in variables.items() if inheritance.is_provider_key(name))
    return frozenset(found)


def _delivered(
    adapter: Adapter, settings: Mapping[str, Value], variables: Mapping[str, str]
) -> Iterator[str]:
    places = {options.PASS_THROUGH + name: name for name in variables}
    places |= {rule.key: rule.target.name for rule in adapter.mapping if isinstance(rule.target, EnvTarget)}
    for key, value in settings.items():
        if key != options.UPSTREAM_API_KEY and (variable := variables.get(places.get(key, ""))):
            yield from secret_syntax.captured(value, variable)
