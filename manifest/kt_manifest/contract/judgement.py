"""In which order the faults of a manifest are judged, as a table; the first fault found is the one reported.

The order is the contract's: what cannot be parsed, then the mandatory sections from top to bottom, then the config
rules. A wrong type counts to its own section, an unknown key or word to the document as a whole. Version negotiation
comes last and is `manifest`'s: a manifest that is wrong in two ways reports its field first.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import semver

from kt_manifest import nearest, words
from kt_manifest.contract import (
    config_rules,
    default_rules,
    kinds,
    kt_config_rules,
    names,
    posture_rules,
    ready_rules,
    schema,
    snapshot,
    trial_rules,
)
from kt_manifest.contract.findings import Draft, Finding, place, section

_PARTS_LIMIT = (
    2**64
)  # what the contract's own parser, a u64 each, can hold (semver.org, "Backus-Naur" sets none)
# What has Unicode's property White_Space (UAX 44, PropList.txt).
_WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)


def faults(document: dict[str, Any]) -> Iterator[Finding]:
    """Give all faults, in the order of judgement, and each once: not what merely follows of an earlier one."""
    draft = Draft(document, tuple(schema.misfits(document)))
    told = {misfit.loc[:-1] for misfit in draft.misfits_of("key")}
    unknown = {(finding.section, finding.got) for finding in _unknown_words(draft)}
    for _, judge in JUDGEMENT:
        for finding in judge(draft):
            again = finding.kind != "unknown_word" and (finding.section, finding.got) in unknown
            if finding.lacks not in told and not again:
                yield finding


def trimmed(text: str) -> str:
    """Return a version without the white space around it; `strip` by itself would take control characters as well."""
    return text.strip(_WHITE_SPACE)


def version(text: str) -> semver.Version | None:
    """Return a strict `X.Y.Z` version, or None; surrounding whitespace is not looked at."""
    trim = trimmed(text)
    if not trim.isascii():  # the library's \d also takes other scripts' digits
        return None
    try:
        parsed = semver.Version.parse(trim)
    except ValueError:
        return None
    return parsed if max(parsed.major, parsed.minor, parsed.patch) < _PARTS_LIMIT else None


def _unknown_keys(draft: Draft) -> Iterator[Finding]:
    for misfit in draft.misfits_of("key"):
        where, name = misfit.loc[:-1], str(misfit.loc[-1])
        known = schema.known_keys(where)
        quoted = config_rules.quoted_section(misfit) if "config" in where[:2] else None
        yield Finding(
            place(misfit.loc, misfit.value),
            "unknown_key",
            got=f"the unknown key {words.shown(name)}",
            wanted=f"only {', '.join(known)}" if known else "an empty table: nothing below it is known yet",
            do=f"quote a dotted key: {quoted}" if quoted else nearest.suggestion(name, known),
            at=misfit.loc,
        )


def _unknown_words(draft: Draft) -> Iterator[Finding]:
    for misfit in draft.misfits_of("word"):
        yield Finding(
            section(misfit.loc[:-1]),
            "unknown_word",
            got=f"{misfit.loc[-1]} = {words.shown(misfit.value)}",
            wanted=misfit.wanted,
            do="write one of these words, in lower case",
            at=misfit.loc,
        )


def _contract_version(draft: Draft) -> Iterator[Finding]:
    wanted = 'a strict semver string X.Y.Z, such as "1.0.0"'
    yield from draft.wrong_types("contract_version")
    text = draft.get("contract_version")
    if text is None or (isinstance(text, str) and not trimmed(text)):
        yield Finding(
            "contract_version",
            "missing_section",
            draft.absence(text),
            wanted,
            "add it at the top of the file",
        )
    elif isinstance(text, str) and version(text) is None:
        yield Finding(
            "contract_version", "invalid_field", words.shown(text), wanted, "no v, no partial version"
        )


def _adapter(draft: Draft) -> Iterator[Finding]:
    yield from draft.wrong_types("adapter", exact=True)
    if not draft.get("adapter") and draft.is_table_or_absent("adapter"):
        yield draft.missing("[adapter]", "the agent's kind", 'add [adapter] with kind = "my-agent"')


def _kind(draft: Draft) -> Iterator[Finding]:
    yield from draft.wrong_types("adapter", "kind")
    at = ("adapter", "kind")
    kind = draft.get(*at)
    wanted = "lower-case letters a-z, digits, '_' and '-', beginning with a letter or digit"
    if kind is None and draft.get("adapter"):
        do = 'add kind = "my-agent"'
        yield Finding("[adapter]", "invalid_field", "no kind", wanted, do, lacks=("adapter",))
    elif isinstance(kind, str) and not names.follows_the_pattern(kind):
        got = f"kind = {words.shown(kind)}"
        yield Finding("[adapter]", "invalid_field", got, wanted, "rename the kind", at)
    elif isinstance(kind, str) and kind in kinds.BUILTIN:
        builtin = ", ".join(sorted(kinds.BUILTIN))
        yield Finding(
            "[adapter]",
            "invalid_field",
            f'kind = "{kind}"',
            f"none of the built-in kinds {builtin}",
            "rename it",
            at,
        )


def _display_name(draft: Draft) -> Iterator[Finding]:
    yield from draft.wrong_types("adapter", "name")
    name = draft.get("adapter", "name")
    if isinstance(name, str) and (fault := words.fault_in_shown_name(name)):
        at = ("adapter", "name")
        yield Finding("[adapter]", "invalid_field", f"name with {fault}", "printable text", "remove it", at)


def _lifecycle(draft: Draft) -> Iterator[Finding]:
    yield from draft.wrong_types("lifecycle", exact=True)
    if draft.get("lifecycle") is None:
        yield draft.missing("[lifecycle]", "at least [lifecycle.start]", "add [lifecycle.start] with exec")


def _start(draft: Draft) -> Iterator[Finding]:
    operations = draft.get("lifecycle")
    if isinstance(operations, dict) and operations.get("start") is None:
        yield draft.missing("[lifecycle.start]", "the operation that starts the agent", "add it with exec")
    yield from _operation(draft, "start")


def _other_operations(draft: Draft) -> Iterator[Finding]:
    for name in ("stop", "pause", "resume"):
        yield from _operation(draft, name)


def _operation(draft: Draft, name: str) -> Iterator[Finding]:
    yield from draft.wrong_types("lifecycle", name)
    template = draft.get("lifecycle", name)
    if not isinstance(template, dict):
        return
    where = f"[lifecycle.{name}]"
    if (fault := snapshot.fault_in_exec(template.get("exec", ""))) is not None:
        wanted = "a program name to be found on PATH, or an absolute path"
        at = ("lifecycle", name, "exec")
        lacks = None if "exec" in template else at[:-1]
        yield Finding(where, "invalid_field", fault, wanted, "name the program in exec", at, lacks)
    for text in [item for item in draft.items("lifecycle", name, "args") if isinstance(item, str)]:
        if fault := words.fault_in_value(text):
            yield Finding(where, "invalid_field", f"an argument with {fault}", "text without it", "remove it")
    yield from _operation_env(draft.table("lifecycle", name, "env"), where)


def _operation_env(env: dict[str, Any], where: str) -> Iterator[Finding]:
    for name, value in env.items():
        if fault := words.fault_in_environment_name(name):
            yield Finding(
                where, "invalid_field", f"in env, {fault}", "a variable's name, without '='", "rename it"
            )
        elif isinstance(value, str) and (fault := words.fault_in_value(value)):
            yield Finding(where, "invalid_field", f"env.{name} with {fault}", "text without it", "remove it")


def _capabilities(draft: Draft) -> Iterator[Finding]:
    yield from draft.wrong_types("capabilities")
    declared = draft.get("capabilities")
    do = "add [capabilities.pause] or [capabilities.interaction] with a level for linux, macos or windows"
    if declared is None:
        yield draft.missing("[capabilities]", "at least one capability", do)
    elif isinstance(declared, dict) and not _supports_anything(declared):
        got = "nothing supported on any system" if declared else "an empty section"
        yield Finding("[capabilities]", "missing_section", got, "at least one guaranteed or best-effort", do)


def _supports_anything(declared: dict[str, Any]) -> bool:
    # Anything but a table or a known word is another step's fault, so it counts as a declaration here.
    supports = [support.values() if isinstance(support, dict) else ["?"] for support in declared.values()]
    return any(level != "unsupported" for levels in supports for level in levels)


def _metering(draft: Draft) -> Iterator[Finding]:
    yield from draft.wrong_types("metering")
    if draft.get("metering", "source") is None and draft.is_table_or_absent("metering"):
        do = 'add [metering] with source = "self-reported" or "engine-observed"'
        missing = draft.missing("[metering]", "a viable metering source", do)
        yield replace(missing, lacks=("metering",))


def _interaction(draft: Draft) -> Iterator[Finding]:
    yield from draft.wrong_types("interaction")


def _kt(draft: Draft) -> Iterator[Finding]:
    yield from draft.wrong_types("kt")
    yield from ready_rules.judge(draft)
    yield from posture_rules.judge(draft)
    yield from default_rules.judge(draft)
    yield from trial_rules.judge(draft)
    if not isinstance(draft.get("kt", "send"), dict):
        return
    url = draft.get("kt", "send", "url")
    wanted = "an http URL of this machine with a port, such as http://127.0.0.1:4096/message"
    if url is None:
        do = "add it, or remove the table"
        yield Finding("[kt.send]", "invalid_field", "no url", wanted, do, lacks=("kt", "send"))
    elif isinstance(url, str) and not _is_loopback(url):
        got = f"url = {words.shown(url)}"
        yield Finding("[kt.send]", "invalid_field", got, wanted, "correct it", ("kt", "send", "url"))


def _is_loopback(url: str) -> bool:
    """Tell whether a message sent there stays on this machine."""
    if not url.isascii() or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    plain = parts.scheme == "http" and port is not None and "@" not in parts.netloc and not parts.fragment
    return plain and parts.hostname in ("127.0.0.1", "localhost", "::1")


JUDGEMENT: tuple[tuple[str, Callable[[Draft], Iterator[Finding]]], ...] = (
    ("unknown key", _unknown_keys),
    ("unknown word", _unknown_words),
    ("contract_version", _contract_version),
    ("[adapter]", _adapter),
    ("kind", _kind),
    ("name", _display_name),
    ("[lifecycle]", _lifecycle),
    ("start", _start),
    ("stop, pause, resume", _other_operations),
    ("[capabilities]", _capabilities),
    ("[metering]", _metering),
    ("[interaction]", _interaction),
    ("config rules", config_rules.judge),
    ("[kt]", _kt),
    ("[kt.config]", kt_config_rules.judge),
)
