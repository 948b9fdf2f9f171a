"""The faults of `[kt.substitution]`, `[kt.isolation]`, `[kt.updates]`, `[kt.version]`, and what is frozen of them."""

import re
from collections.abc import Iterator
from typing import Any

from kt_manifest import words
from kt_manifest.contract import kt_schema, snapshot
from kt_manifest.contract.declared_posture import FORMATS, ConfigSwitch, Isolation, Posture, Updates, Version
from kt_manifest.contract.findings import Draft, Finding
from kt_manifest.launch import native_path
from kt_manifest.launch.placeholders import SYNTAXES
from kt_manifest.line_pattern import GroupPattern, PatternRefused

_SUBSTITUTION, _ISOLATION, _UPDATES, _VERSION = (
    f"[kt.{name}]" for name in ("substitution", "isolation", "updates", "version")
)
_RELEASE = re.compile(r"[!-~]{1,64}")
_LONGEST_WORDS = 300
_RESERVED_VARIABLES = frozenset({"PATH", "NO_PROXY", "no_proxy", "KT_RUN", "KT_INSTANCE"})
"""Variables that isolation and updates cannot have: the program is found by one, the others are the engine's."""


def declared(section: kt_schema.KtSection) -> Posture:
    """Return what a judged `[kt]` declares."""
    isolation, updates, version = section.isolation, section.updates, section.version
    return Posture(
        substitution=tuple(section.substitution.syntax or ()) if section.substitution else (),
        isolation=None if isolation is None else _declared_isolation(isolation),
        updates=None if updates is None else _declared_updates(updates),
        version=None
        if version is None
        else Version(command=tuple(version.command or ()), pattern=version.pattern or ""),
    )


def _declared_isolation(section: kt_schema.IsolationSection) -> Isolation:
    return Isolation(
        env={name: "/".join(native_path.segments(folder)) for name, folder in section.env.items()},
        undocumented=tuple(section.undocumented),
        validated=section.validated,
    )


def _declared_updates(section: kt_schema.UpdatesSection) -> Updates:
    config = section.config
    return Updates(
        never=bool(section.never),
        env=dict(section.env),
        args=tuple(section.args),
        config=None
        if config is None
        else ConfigSwitch(
            env=config.env,
            file=None if config.file is None else "/".join(native_path.segments(config.file)),
            key=config.key or "",
            value=config.value,
        ),
        switch=section.switch,
        managed_layer=section.managed_layer,
        verified=section.verified,
    )


def judge(draft: Draft) -> Iterator[Finding]:
    """Give the faults of the four tables that are more than a wrong type or an unknown word."""
    yield from _substitution(draft)
    yield from _isolation(draft)
    yield from _updates(draft)
    yield from _version(draft)


def _substitution(draft: Draft) -> Iterator[Finding]:
    section = draft.get("kt", "substitution")
    if not isinstance(section, dict):
        return
    syntaxes = draft.items("kt", "substitution", "syntax")
    wanted = "at least one of " + ", ".join(f'"{syntax}"' for syntax in SYNTAXES)
    if section.get("syntax") in (None, []):
        do = "name how the agent writes its placeholders, or remove the table"
        yield Finding(_SUBSTITUTION, "invalid_field", "no syntax", wanted, do, lacks=("kt", "substitution"))
    named = [text for text in syntaxes if isinstance(text, str)]
    for text in dict.fromkeys(text for text in named if text in SYNTAXES and named.count(text) > 1):
        yield Finding(_SUBSTITUTION, "invalid_field", f"{words.shown(text)} twice", "it once", "remove one")


def _isolation(draft: Draft) -> Iterator[Finding]:
    section = draft.get("kt", "isolation")
    if not isinstance(section, dict):
        return
    folders = draft.table("kt", "isolation", "env")
    if section.get("env") in (None, {}):
        wanted = 'variables that get a folder in the Agent Home, such as env = { XDG_DATA_HOME = "data" }'
        do = "add it, or remove the table"
        yield Finding(_ISOLATION, "invalid_field", "no env", wanted, do, lacks=("kt", "isolation"))
    for name, folder in folders.items():
        yield from _variable(name, _ISOLATION)
        if isinstance(folder, str):
            yield from _folder(draft, name, folder)
    levers = [lever for lever in draft.items("kt", "isolation", "undocumented") if isinstance(lever, str)]
    for lever in levers:
        if lever not in folders:
            got = f"undocumented: {words.shown(lever)}"
            yield Finding(
                _ISOLATION, "invalid_field", got, "names that env has", "correct it, or add it to env"
            )
    if levers and section.get("validated") is None:
        wanted = "the release of the agent on which an undocumented lever was last tried"
        yield Finding(_ISOLATION, "invalid_field", "undocumented without validated", wanted, "add validated")
    yield from _release(section.get("validated"), "validated", _ISOLATION)
    yield from _taken(draft, folders, _ISOLATION, by_config=False)


def _folder(draft: Draft, name: str, folder: str) -> Iterator[Finding]:
    got = f"env.{name} = {words.shown(folder)}"
    if fault := native_path.fault(folder):
        wanted = "a folder inside the Agent Home, named by a relative path"
        yield Finding(_ISOLATION, "invalid_field", f"{got}: {fault}", wanted, "choose another folder")
        return
    path = "/".join(native_path.segments(folder))
    for where, key in _rules(draft):
        file = draft.get(*where, key, "file", "path")
        if not isinstance(file, str) or native_path.fault(file):
            continue
        rendered = "/".join(native_path.segments(file))
        if path == rendered or path.startswith(f"{rendered}/"):
            wanted = f"a folder: [{'.'.join(where)}.{key}] has a file at {words.shown(rendered)}"
            yield Finding(_ISOLATION, "invalid_field", got, wanted, "choose another folder")


def _updates(draft: Draft) -> Iterator[Finding]:
    section = draft.get("kt", "updates")
    if not isinstance(section, dict):
        return
    switches = [name for name in ("env", "args", "config") if section.get(name) not in (None, {}, [])]
    never = section.get("never") is True
    if never and switches:
        got = f"never = true and {', '.join(switches)}"
        yield _update_fault(got, "one of the two", "remove never where the agent does update itself")
    if not never and not switches:
        wanted = "what switches self-update off (env, args or config), or never = true"
        do = "add it, or remove the table"
        yield Finding(
            _UPDATES, "invalid_field", "nothing that switches it off", wanted, do, lacks=("kt", "updates")
        )
    variables = draft.table("kt", "updates", "env")
    for name, value in variables.items():
        yield from _variable(name, _UPDATES)
        if isinstance(value, str) and (fault := words.fault_in_value(value)):
            yield _update_fault(f"env.{name} with {fault}", "text without it", "remove it")
    for text in draft.items("kt", "updates", "args"):
        if isinstance(text, str) and (fault := "an empty one" if not text else words.fault_in_value(text)):
            yield _update_fault(f"an argument: {fault}", "text without it", "remove it")
    yield from _config_switch(draft, section.get("config"))
    yield from _update_words(section)
    yield from _release(section.get("verified"), "verified", _UPDATES)
    yield from _taken(draft, variables, _UPDATES, by_config=True)
    for name in variables:
        if name in draft.table("kt", "isolation", "env"):
            yield _update_fault(f"env.{name}, which [kt.isolation] sets", "a variable once", "remove one")


def _config_switch(draft: Draft, config: Any) -> Iterator[Finding]:
    if not isinstance(config, dict):
        return
    wanted = 'config = { env = "VARIABLE WITH JSON" or file = "a.toml", key = "dotted.key", value = false }'
    name, file, key, value = (config.get(word) for word in ("env", "file", "key", "value"))
    missing = [word for word in ("key", "value") if config.get(word) is None]
    if name is None and file is None:
        missing.insert(0, "env or file")
    if missing:
        got, lacks = f"config without {' and '.join(missing)}", ("kt", "updates", "config")
        yield Finding(_UPDATES, "invalid_field", got, wanted, "add it", lacks=lacks)
    if name is not None and file is not None:
        yield _update_fault("config with env and file", wanted, "keep the one that the agent reads")
    if isinstance(file, str):
        yield from _switch_file(file)
    if isinstance(name, str):
        yield from _variable(name, _UPDATES)
        if name in draft.table("kt", "updates", "env") or name in draft.table("kt", "isolation", "env"):
            yield _update_fault(f"config.env = {words.shown(name)}", "a variable once", "remove the other")
    if isinstance(key, str) and (not all(key.split(".")) or words.fault_in_shown_name(key)):
        yield _update_fault(
            f"config.key = {words.shown(key)}", "a dotted key such as update.check", "correct it"
        )
    if value is not None and (not isinstance(value, str | bool | int) or _is_huge(value)):
        yield _update_fault(
            f"config.value = {words.shown(value)}", "a string, a boolean or an integer", "change it"
        )


def _switch_file(file: str) -> Iterator[Finding]:
    if fault := native_path.fault(file):
        wanted = "a file inside the Agent Home, named by a relative path"
        yield _update_fault(f"config.file {words.shown(file)}: {fault}", wanted, "choose another path")
    elif ConfigSwitch(file=file, key="", value="").format is None:
        wanted = "a name that ends in ." + ", .".join(FORMATS)
        yield _update_fault(
            f"config.file = {words.shown(file)}", wanted, "name the file that the agent reads"
        )


def _is_huge(value: Any) -> bool:
    return isinstance(value, int) and abs(value) >= 2**53  # what every reader of JSON carries (RFC 8259, 6)


def _update_words(section: dict[str, Any]) -> Iterator[Finding]:
    managed = section.get("managed_layer")
    if managed is not None and not isinstance(managed, bool | str):
        yield _update_fault(
            f"managed_layer = {words.shown(managed)}", "true, false or a sentence", "change it"
        )
    if managed is True and section.get("never") is True:
        yield _update_fault("never = true and managed_layer = true", "one of the two", "remove one")
    for name, text in (("switch", section.get("switch")), ("managed_layer", managed)):
        if isinstance(text, str) and (fault := _fault_in_words(text)):
            yield _update_fault(f"{name} with {fault}", "one line of text", "correct it")


def _fault_in_words(text: str) -> str | None:
    if not text.strip():
        return "no words"
    if len(text) > _LONGEST_WORDS:
        return f"{len(text)} characters, more than {_LONGEST_WORDS}"
    return words.fault_in_shown_name(text)


def _version(draft: Draft) -> Iterator[Finding]:
    section = draft.get("kt", "version")
    if not isinstance(section, dict):
        return
    command = section.get("command")
    if command is None or (isinstance(command, list) and all(isinstance(word, str) for word in command)):
        fault = snapshot.fault_in_exec(command[0]) if command else "no program"
        fault = fault or next(
            (found for word in command or () if (found := words.fault_in_value(word))), None
        )
        if fault:
            wanted = 'a program and its arguments, such as ["my-agent", "--version"]'
            yield Finding(_VERSION, "invalid_field", f"command with {fault}", wanted, "correct it")
    pattern = section.get("pattern")
    if pattern is None or isinstance(pattern, str):
        try:
            GroupPattern(pattern or "")
        except PatternRefused as refused:
            wanted = 'a regular expression (RE2) with one group, such as "my-agent ([0-9.]+)"'
            got = f"pattern = {words.shown(pattern)}: {refused}" if pattern else "no pattern"
            yield Finding(_VERSION, "invalid_field", got, wanted, "correct it")


def _variable(name: str, where: str) -> Iterator[Finding]:
    if fault := words.fault_in_environment_name(name):
        yield Finding(
            where, "invalid_field", f"in env, {fault}", "a variable's name, without '='", "rename it"
        )
    elif name in _RESERVED_VARIABLES:
        wanted = "none of " + ", ".join(sorted(_RESERVED_VARIABLES))
        yield Finding(where, "invalid_field", f"env.{name}", wanted, "remove it")


def _release(value: Any, name: str, where: str) -> Iterator[Finding]:
    if isinstance(value, str) and not _RELEASE.fullmatch(value):
        wanted = "a release as the agent itself names it, such as 1.18.33"
        yield Finding(where, "invalid_field", f"{name} = {words.shown(value)}", wanted, "correct it")


def _taken(draft: Draft, names: dict[str, Any], where: str, *, by_config: bool) -> Iterator[Finding]:
    """Give a fault for each variable that the adapter sets elsewhere, too: one of the two would be a lie."""
    started = draft.table("lifecycle", "start", "env")
    mapped = (
        {
            name: f"[{'.'.join(at)}.{key}]"
            for at, key in _rules(draft)
            if isinstance(name := draft.get(*at, key, "env"), str)
        }
        if by_config
        else {}
    )
    for name in names:
        if name in started:
            got = f"env.{name}, which [lifecycle.start] env sets"
            yield Finding(where, "invalid_field", got, "a variable once", "remove one of the two")
        if name in mapped:
            got = f"env.{name}, which {mapped[name]} sets"
            yield Finding(where, "invalid_field", got, "a variable once", "remove one of the two")


def _rules(draft: Draft) -> Iterator[tuple[tuple[str, ...], str]]:
    """Give where each rule for a setting stands, and its key."""
    for where in (("config",), ("kt", "config")):
        yield from ((where, key) for key in draft.table(*where))


def _update_fault(got: str, wanted: str, do: str) -> Finding:
    return Finding(_UPDATES, "invalid_field", got, wanted, do)
