"""Putting the files of a launch into the Agent Home, and putting back what was there before.

Everything is judged before anything is written: a file that cannot be read, or has something else where a value is to
go, refuses the whole and is not touched.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kt_manifest import exit_codes, words
from kt_manifest.launch import agent_home, merge_journal
from kt_manifest.launch.agent_home import Found, RenderedFile, RenderRefused
from kt_manifest.launch.merge_journal import Journal, JournalUnreadable, Merged
from kt_manifest.launch.native import document
from kt_manifest.launch.native.document import Occupied, Uneditable, Unreadable
from kt_manifest.launch.native_file import MergedFile

NEW_MODE = 0o600


class MergeRefused(Exception):
    """Values cannot be put into a file of the Agent Home, or not be taken out of it; the file is as it was."""

    exit_code = exit_codes.FAILED

    def __init__(self, path: str, *, got: str, wanted: str, do: str) -> None:
        self.path = path
        self.got = got
        self.wanted = wanted
        self.do = do
        super().__init__(f"cannot set values in {words.shown_path(path)}: got {got}, wanted {wanted}; {do}")


@dataclass(frozen=True, slots=True)
class _Step:
    """What happens to one file: `text` is what it will say, None where it goes; `entry` is what the journal keeps."""

    path: str
    now: Found | None = field(repr=False)
    text: str | None = field(repr=False)
    mode: int
    entry: Merged | None

    def changes(self) -> bool:
        """Tell whether the file becomes another."""
        return self.text != _text_of(self.now) or (self.now is not None and self.now.mode != self.mode)


def write_files(home: Path, files: Sequence[RenderedFile], merges: Sequence[MergedFile] = ()) -> None:
    """Write whole files, and put values into others; what an earlier launch put into any other file is put back.

    Raises:
        MergeRefused, JournalUnreadable: nothing has changed.
        RenderRefused: as in `agent_home.write_files`; files before it have been written.
    """
    with agent_home.opened(home) as root:
        journal = merge_journal.read(root)
        wanted = {file.path for file in merges}
        leaving = [
            _step(root, journal, MergedFile(path, entry.format, ()))
            for path, entry in journal.merged.items()
            if path not in wanted
        ]
        into = [_step(root, journal, file) for file in merges]
        for step in leaving:
            journal = _take(root, journal, step)
        for file in files:
            journal = _write_whole(root, journal, file)
        for step in into:
            journal = _take(root, journal, step)


def merges_pending(home: Path, merges: Sequence[MergedFile]) -> tuple[str, ...]:
    """Return which files a launch would put values into, or take values out of; those that cannot be told as well."""
    try:
        with agent_home.opened(home) as root:
            journal = merge_journal.read(root)
            wanted = {file.path: file for file in merges}
            for path, entry in journal.merged.items():
                wanted.setdefault(path, MergedFile(path, entry.format, ()))
            return tuple(path for path, file in wanted.items() if _would_change(root, journal, file))
    except (RenderRefused, JournalUnreadable):
        return tuple(file.path for file in merges)


def _would_change(root: int, journal: Journal, file: MergedFile) -> bool:
    try:
        return _step(root, journal, file).changes()
    except (MergeRefused, RenderRefused):
        return True


def put_back(home: Path) -> tuple[str, ...]:
    """Put back everything that was put into files of this Agent Home; return what could not be, as sentences.

    Files that were written whole stay: they are the agent's last configuration.
    """
    if not home.is_dir():
        return ()
    told: list[str] = []
    try:
        with agent_home.opened(home) as root:
            journal = merge_journal.read(root)
            for path, entry in journal.merged.items():
                try:
                    journal = _take(root, journal, _step(root, journal, MergedFile(path, entry.format, ())))
                except (MergeRefused, RenderRefused) as error:
                    told.append(f"{words.shown_path(path)} keeps what kt has put into it: {error.got}")
    except (RenderRefused, JournalUnreadable) as error:
        told.append(str(error))
    return tuple(told)


def _step(root: int, journal: Journal, file: MergedFile) -> _Step:
    entry = journal.merged.get(file.path)
    now = agent_home.read(root, file.path)
    text = _decoded(file, now)
    try:
        base, before = merge_journal.base(entry, text)
    except (Unreadable, Uneditable) as error:
        raise _refused(file.path, entry.format if entry else file.format, error) from error
    mode = NEW_MODE if now is None else now.mode
    if not file.edits:
        original_mode = mode if entry is None or base != entry.original else entry.mode
        return _Step(file.path, now, base, original_mode, None)
    try:
        new = document.merge(file.format, base, file.edits)
        ours = merge_journal.ours_of(file.format, new, [path for path, _ in file.edits], before)
    except (Unreadable, Uneditable, Occupied) as error:
        raise _refused(file.path, file.format, error) from error
    states = tuple(dict.fromkeys(merge_journal.digest(each) for each in (text, new) if each is not None))
    original_mode = mode if entry is None or base is None else entry.mode
    # What is put in may be a secret: nobody else may read it then, whatever the file allowed before.
    fresh = Merged(file.format, base, original_mode, states, ours)
    return _Step(file.path, now, new, mode & 0o700, merge_journal.refreshed(entry, fresh))


def _take(root: int, journal: Journal, step: _Step) -> Journal:
    """Make a step: the journal first where values go in, the file first where they go out."""
    kept = {path: entry for path, entry in journal.merged.items() if path != step.path}
    after = replace(journal, merged=kept if step.entry is None else {**kept, step.path: step.entry})
    if step.entry is not None:
        _save(root, journal, after)
    if step.changes():
        if step.text is None:
            agent_home.remove(root, step.path)
        else:
            agent_home.put(root, step.path, step.text.encode(), mode=step.mode)
    if step.entry is None:
        _save(root, journal, after)
    return after


def _write_whole(root: int, journal: Journal, file: RenderedFile) -> Journal:
    if file.marked:
        agent_home.write(root, file)
        return journal
    now = agent_home.read(root, file.path)
    known = journal.written.get(file.path, ())
    before = None if now is None else merge_journal.digest(now.data.decode("utf-8", "replace"))
    others = {path: states for path, states in journal.written.items() if path != file.path}
    if file.content:
        ours = [before] if before is not None and before in known else []
        states = tuple(dict.fromkeys((*ours, merge_journal.digest(file.content))))
        after = replace(journal, written={**others, file.path: states})
        _save(root, journal, after)
        agent_home.write(root, file)
        return after
    if before is not None and before in known:
        agent_home.remove(root, file.path)
    after = replace(journal, written=others)
    _save(root, journal, after)
    return after


def _save(root: int, old: Journal, new: Journal) -> None:
    if old != new:  # a start that changes nothing costs no write
        merge_journal.save(root, new)


def _decoded(file: MergedFile, now: Found | None) -> str | None:
    try:
        return None if now is None else now.data.decode()
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise _refused(file.path, file.format, Unreadable("a byte that is not UTF-8", line=line)) from error


def _text_of(found: Found | None) -> str | None:
    return None if found is None else found.data.decode()


def _refused(path: str, format_: str, error: Unreadable | Uneditable | Occupied) -> MergeRefused:
    match error:
        case Unreadable():
            got, wanted = str(error), f"{format_} that can be read"
            do = "correct that line, or move the file away"
        case Occupied():
            got = f"{error.got} at {words.shown('.'.join(error.path))}"
            wanted, do = (
                "nothing or a value there, under tables",
                "move it out of the way, or unset the setting",
            )
        case _:
            got, wanted = str(error), f"{format_} that kt can edit without changing anything else"
            do = "spell that place more simply, or set the value in the file yourself and unset the setting"
    return MergeRefused(path, got=got, wanted=wanted, do=do)
