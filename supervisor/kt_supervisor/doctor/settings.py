"""The files of settings: the fleet's and each agent's, judged as a start judges them."""

from pathlib import Path

from kt_ledger.layout import StateLayout
from kt_manifest import words
from kt_manifest.configuration import config_file, layers
from kt_supervisor.doctor.finding import Finding, bad, ok

MOST_AGENTS = 10_000
SHOWN = 3


def files_of_settings(files: StateLayout) -> Finding:
    """Look at every file of settings that is there."""
    homes = files.homes
    names = sorted(path.name for path in homes.iterdir())[:MOST_AGENTS] if homes.is_dir() else []
    paths = [(layers.FLEET, files.fleet_config)]
    paths += [
        (layers.INSTANCE, files.home(name) / config_file.NAME) for name in names if not name.startswith(".")
    ]
    faults = [fault for layer, path in paths for fault in faults_of(layer, path)]
    if not faults:
        return ok("settings", "every file of settings can be used")
    more = f" (and {len(faults) - SHOWN} more)" if len(faults) > SHOWN else ""
    return bad(
        "settings", "; ".join(faults[:SHOWN]) + more, "correct the file: starts are refused until then"
    )


def faults_of(layer: str, path: Path) -> list[str]:
    """Return what is wrong with one file, in words; nothing where it is not there."""
    try:
        values = config_file.read(path)
    except (config_file.MalformedLayer, config_file.LayerUnavailable) as error:
        return [str(error)]
    found = layers.faults(layers.merge([layers.Layer(layer, values, path)]))
    return [f"{fault.error} ({words.shown_path(path)})" for fault in found]
