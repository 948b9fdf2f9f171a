"""What `[kt.isolation]` and `[kt.updates]` do to a launch, and what is to be said of them before anybody trusts them.

Pure: folders are named here and made by `agent_home`; the installed release is asked by whoever may run a program.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

from kt_manifest import exit_codes, words
from kt_manifest.contract.declared_posture import ConfigSwitch, Posture
from kt_manifest.contract.snapshot import Adapter
from kt_manifest.launch.agent_home import RenderedFile
from kt_manifest.launch.native import document
from kt_manifest.launch.native_file import MergedFile
from kt_manifest.launch.provenance import EnvEntry, Source

ERROR, WARNING = "error", "warning"


class SwitchUndeliverable(Exception):
    """Self-update cannot be switched off: the variable that holds the agent's configuration holds no JSON object."""

    exit_code = exit_codes.FAILED

    def __init__(self, switch: ConfigSwitch, *, got: str, setter: str) -> None:
        self.got = f"{got} in {words.shown(switch.place)[1:-1]}, set by {setter}"
        self.wanted = f"a JSON object, in which {switch.key} switches the agent's self-update off"
        self.do = f"correct {setter}, or leave it to the adapter"
        super().__init__(f"cannot switch self-update off: got {self.got}, wanted {self.wanted}; {self.do}")


# -- what is delivered ---------------------------------------------------------------------------------------------
def entries(posture: Posture, home: Path) -> list[EnvEntry]:
    """Return the variables of isolation, each with its folder in the Agent Home, and those of the update switch."""
    isolated = {} if posture.isolation is None else posture.isolation.env
    switched = {} if posture.updates is None else posture.updates.env
    return [
        *(
            EnvEntry(name, str(home.joinpath(*folder.split("/"))), Source.ISOLATION)
            for name, folder in isolated.items()
        ),
        *(EnvEntry(name, value, Source.UPDATES) for name, value in switched.items()),
    ]


def folders(posture: Posture) -> tuple[str, ...]:
    """Return the folders that must be there before the start, relative to the Agent Home, each once."""
    return () if posture.isolation is None else tuple(dict.fromkeys(posture.isolation.env.values()))


def arguments(posture: Posture) -> tuple[str, ...]:
    """Return what switches self-update off on the command line, behind the adapter's own arguments."""
    return () if posture.updates is None else posture.updates.args


def switched(posture: Posture, variables: Sequence[EnvEntry]) -> tuple[tuple[EnvEntry, ...], list[str]]:
    """Return the variables with the update switch put into the agent's JSON configuration, and what is told of that.

    Raises:
        SwitchUndeliverable: the variable holds no JSON object, or something else than one on the way to the key.
    """
    switch = None if posture.updates is None else posture.updates.config
    if switch is None or switch.env is None:
        return tuple(variables), []
    held = next((entry for entry in variables if entry.name == switch.env), None)
    if held is None or not held.value.strip():
        changed = EnvEntry(switch.env, json.dumps(_nested(switch)), Source.UPDATES)
        return (*(entry for entry in variables if entry.name != switch.env), changed), []
    document = _object(held, switch)
    there = _put(document, held, switch)
    if there is switch.value or (type(there) is type(switch.value) and there == switch.value):
        return tuple(variables), []
    changed = replace(held, value=json.dumps(document, ensure_ascii=False))
    told = (
        []
        if there is _ABSENT
        else [f"{switch.key} in {switch.env} is replaced: [kt.updates] sets it ({held.setter})"]
    )
    return tuple(changed if entry is held else entry for entry in variables), told


def merged(
    posture: Posture, files: Sequence[RenderedFile], merges: Sequence[MergedFile]
) -> tuple[tuple[RenderedFile, ...], tuple[MergedFile, ...], list[str]]:
    """Return the files of a launch with the update switch in the one that it belongs to, and what is told of that.

    Raises:
        SwitchUndeliverable: something else than a table is on the way to the key.
    """
    switch = None if posture.updates is None else posture.updates.config
    if switch is None or switch.file is None or switch.format is None:
        return tuple(files), tuple(merges), []
    edit = (tuple(switch.key.split(".")), switch.value)
    if whole := next((file for file in files if file.path == switch.file), None):
        changed = replace(whole, content=_put_into(whole.content, switch, edit))
        return tuple(changed if file is whole else file for file in files), tuple(merges), []
    given = next((file for file in merges if file.path == switch.file), None)
    if given is None:
        return tuple(files), (*merges, MergedFile(switch.file, switch.format, (edit,))), []
    others = tuple(one for one in given.edits if one[0] != edit[0])
    lost = [value for path, value in given.edits if path == edit[0]]
    told = (
        [f"{switch.key} in {switch.file} is replaced: [kt.updates] sets it"]
        if lost not in ([], [switch.value])
        else []
    )
    changed_merge = MergedFile(given.path, given.format, (*others, edit))
    return tuple(files), tuple(changed_merge if file is given else file for file in merges), told


def _put_into(content: str, switch: ConfigSwitch, edit: document.Edit) -> str:
    try:
        return document.merge(str(switch.format), content or None, [edit])
    except (document.Unreadable, document.Uneditable, document.Occupied) as error:
        raise SwitchUndeliverable(switch, got=type(error).__name__.lower(), setter="the adapter") from error


_ABSENT = object()


def _nested(switch: ConfigSwitch) -> dict[str, Any]:
    value: Any = switch.value
    for name in reversed(switch.key.split(".")):
        value = {name: value}
    return dict(value)


def _object(held: EnvEntry, switch: ConfigSwitch) -> dict[str, Any]:
    try:
        document = json.loads(held.value)
    except (ValueError, RecursionError):
        raise SwitchUndeliverable(switch, got="no JSON", setter=held.setter) from None
    if not isinstance(document, dict):
        raise SwitchUndeliverable(switch, got="JSON that is no object", setter=held.setter)
    return document


def _put(document: dict[str, Any], held: EnvEntry, switch: ConfigSwitch) -> Any:
    """Set the key, and return what was there."""
    *parents, last = switch.key.split(".")
    node: Any = document
    for name in parents:
        node = node.setdefault(name, {})
        if not isinstance(node, dict):
            raise SwitchUndeliverable(switch, got=f"{name}, which is no object,", setter=held.setter)
    there = node.get(last, _ABSENT)
    node[last] = switch.value
    return there


# -- what is found -------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class PostureFinding:
    """One sentence about a posture: `level` is "error" or "warning", `section` the table that it is about."""

    level: str
    section: str
    text: str


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One instance as it would be started: its Agent Home and its final variables, which show in no repr."""

    name: str
    home: Path
    env: Mapping[str, str] = field(repr=False)


def installed_version(posture: Posture, output: str) -> str | None:
    """Return the release in what the version command printed; None without `[kt.version]`, or where it is not there."""
    if posture.version is None:
        return None
    # Imported late: a start needs no regular expressions of RE2, and neither does a list.
    from kt_manifest.line_pattern import GroupPattern

    return GroupPattern(posture.version.pattern).taken_from(output)


def findings(
    adapter: Adapter, installed: str | None, *, instances: Sequence[Neighbour] = ()
) -> list[PostureFinding]:
    """Return what is to be said before anybody relies on an adapter's isolation and update switch.

    Args:
        installed: the release of the agent that is installed, None where nobody could ask it.
        instances: how instances of this adapter would be started; two of them must not share a root.
    """
    posture = adapter.posture
    return [
        *_about_isolation(posture, installed),
        *_about_updates(posture, installed),
        *(found for instance in instances for found in _about_instance(posture, instance)),
        *_shared_roots(posture, instances),
    ]


def _about_isolation(posture: Posture, installed: str | None) -> list[PostureFinding]:
    where, isolation = "[kt.isolation]", posture.isolation
    if isolation is None:
        said = "it is not declared: instances share whatever the agent keeps outside of its Agent Home"
        return [PostureFinding(WARNING, where, said)]
    if isolation.validated is None:
        said = "nobody says on which release its variables were last seen to work: add validated"
        return [PostureFinding(WARNING, where, said)]
    levers = ", ".join(isolation.undocumented)
    what = f"undocumented: {levers}" if levers else "all of them documented"
    return _about_release(where, isolation.validated, installed, f"try its variables again ({what})")


def _about_updates(posture: Posture, installed: str | None) -> list[PostureFinding]:
    where, updates = "[kt.updates]", posture.updates
    if updates is None:
        said = "it is not declared: nobody says whether the agent updates itself, and what switches that off"
        return [PostureFinding(WARNING, where, said)]
    found = []
    if not updates.never and updates.managed_layer is None:
        said = "nobody says whether a managed layer of the agent's configuration can override it: add managed_layer"
        found.append(PostureFinding(WARNING, where, said))
    if updates.verified is None:
        said = "nobody says on which release that was last tried: add verified"
        return [*found, PostureFinding(WARNING, where, said)]
    return found + _about_release(
        where, updates.verified, installed, "try again that it does not update itself"
    )


def _about_release(where: str, known: str, installed: str | None, do: str) -> list[PostureFinding]:
    if installed is None:
        said = f"last tried on {known}, and the installed release is not known; {do}"
    elif installed != known:
        said = f"last tried on {known}, and {words.shown(installed)[1:-1]} is installed; {do}"
    else:
        return []
    return [PostureFinding(WARNING, where, said)]


def _roots(posture: Posture, instance: Neighbour) -> dict[str, PurePath]:
    names = () if posture.isolation is None else tuple(posture.isolation.env)
    return {name: PurePath(instance.env[name]) for name in names if instance.env.get(name)}


def _about_instance(posture: Posture, instance: Neighbour) -> list[PostureFinding]:
    where, roots = "[kt.isolation]", _roots(posture, instance)
    names = () if posture.isolation is None else tuple(posture.isolation.env)
    missing = [name for name in names if name not in roots]
    found = [PostureFinding(ERROR, where, f"{instance.name} has no {name}") for name in missing]
    for name, root in roots.items():
        if not root.is_relative_to(instance.home):
            said = f"{name} of {instance.name} leads out of its Agent Home"
            found.append(PostureFinding(WARNING, where, said))
    switches = {} if posture.updates is None else posture.updates.env
    for name, value in switches.items():
        if instance.env.get(name) != value:
            said = f"{instance.name} is not started with {name} as declared: it may update itself"
            found.append(PostureFinding(ERROR, "[kt.updates]", said))
    return found


def _shared_roots(posture: Posture, instances: Sequence[Neighbour]) -> list[PostureFinding]:
    found = []
    for place, one in enumerate(instances):
        for other in instances[place + 1 :]:
            for name, root in _roots(posture, one).items():
                for other_name, other_root in _roots(posture, other).items():
                    if root.is_relative_to(other_root) or other_root.is_relative_to(root):
                        whose = f"{one.name} ({name}) and {other.name} ({other_name})"
                        said = f"{whose} share the root {min(root, other_root)}"
                        found.append(PostureFinding(ERROR, "[kt.isolation]", said))
    return found
