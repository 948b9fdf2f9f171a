"""The faults of `[kt.test]`, and what it declares."""

from collections.abc import Iterator

from kt_manifest import words
from kt_manifest.configuration import settings
from kt_manifest.contract import kt_schema
from kt_manifest.contract.findings import Draft, Finding
from kt_manifest.contract.trial import NONCE, PATH, Trial
from kt_manifest.launch import native_path

WHEN_DONE = "when-done"
LONGEST_SAY_CHARS = 4096
_SECTION = "[kt.test]"
_ARGUMENTS = ("args", "stream", "crash", "dump")


def declared(section: kt_schema.TrialSection | None) -> Trial:
    """Return what a judged section declares."""
    if section is None:
        return Trial()
    return Trial(
        args=tuple(section.args or ()),
        say=section.say,
        settings=dict(section.settings or {}),
        stream=_maybe(section.stream),
        crash=_maybe(section.crash),
        dump=_maybe(section.dump),
        outside=tuple(section.outside or ()),
        ends_when_done=section.ends == WHEN_DONE,
        input_tokens=None if section.reports is None else section.reports.input_tokens,
        output_tokens=None if section.reports is None else section.reports.output_tokens,
    )


def judge(draft: Draft) -> Iterator[Finding]:
    """Give the faults of `[kt.test]` that are more than a wrong type or an unknown word."""
    for name in _ARGUMENTS:
        yield from _arguments(name, draft.items("kt", "test", name))
    for path in draft.items("kt", "test", "outside"):
        if isinstance(path, str) and (fault := native_path.fault(path)):
            wanted = "a path below the home folder, such as .gitconfig"
            yield _finding(f"outside with {words.shown(path)}: {fault}", wanted, "correct it")
    yield from _say(draft.get("kt", "test", "say"))
    yield from _settings(draft.table("kt", "test", "settings"))
    dump = draft.items("kt", "test", "dump")
    if dump and not any(isinstance(word, str) and PATH in word for word in dump):
        yield _finding(f"dump without {PATH}", f"{PATH}, where the agent is to write", "add it")
    if isinstance(draft.get("kt", "test", "reports"), dict):
        yield from _reports(draft)


def _arguments(name: str, given: list[object]) -> Iterator[Finding]:
    for word in given:
        if isinstance(word, str) and (fault := words.fault_in_value(word)):
            yield _finding(f"{name} with {fault}", "text that can be an argument", "remove it")


def _say(text: object) -> Iterator[Finding]:
    if not isinstance(text, str):
        return
    if NONCE not in text:
        wanted = f"{NONCE}, a word by which the kit knows its own message again"
        yield _finding(f"say without {NONCE}", wanted, f'write, say, say = "Repeat the word {NONCE}."')
    if fault := words.fault_in_value(text):
        yield _finding(f"say with {fault}", "text", "remove it")
    if len(text) > LONGEST_SAY_CHARS:
        yield _finding(f"say of {len(text)} characters", f"at most {LONGEST_SAY_CHARS}", "shorten it")


def _settings(given: dict[str, object]) -> Iterator[Finding]:
    for key, text in given.items():
        if not isinstance(text, str):
            continue  # a wrong type, judged as such
        try:
            settings.check(key, text)
        except (
            settings.UnknownKey,
            settings.ReservedKey,
            settings.NotEnforcedYet,
            settings.InvalidValue,
        ) as refused:
            yield _finding(f"settings with {words.shown(key)}: {refused}", "what can be set", "correct it")


def _reports(draft: Draft) -> Iterator[Finding]:
    wanted = "input_tokens and output_tokens, whole numbers from 0 on, not both 0"
    counts = [draft.get("kt", "test", "reports", name) for name in ("input_tokens", "output_tokens")]
    if any(count is None for count in counts):
        yield _finding("reports without one of its counts", wanted, "add it")
    elif not all(type(count) is int and count >= 0 for count in counts) or not any(counts):
        shown = " and ".join(words.shown(count) for count in counts)
        yield _finding(f"reports of {shown}", wanted, "correct it")


def _maybe(given: list[str] | None) -> tuple[str, ...] | None:
    return None if given is None else tuple(given)


def _finding(got: str, wanted: str, do: str) -> Finding:
    return Finding(_SECTION, "invalid_field", got, wanted, do)
