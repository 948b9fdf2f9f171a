"""The end of a Run: the last words, the agent's cgroup, then `exit.json`, each before the next, however long."""

from collections.abc import Callable

from kt_supervisor.keeper import capture, loop, places, proctree, records

_RETRY_S = 0.25
_LAST_DRAIN_BYTES = 4 * 1024 * 1024

Record = dict[str, object]


class Ending:
    """Writes down how a Run ended once its tree is empty, or its survivors are named."""

    def __init__(
        self,
        events: loop.Loop,
        *,
        output: capture.Output,
        tree: proctree.Tree,
        note: Callable[[str], None],
        facts: Callable[[], Record],
        over: Callable[[Record], None],
    ) -> None:
        """`facts()` is what the Run's owner knows of the end; `over(exit record)` is called once it is on disk."""
        self._loop = events
        self._output = output
        self._tree = tree
        self._note = note
        self._facts = facts
        self._over = over
        self._kills: int | None = None

    def begin(self) -> None:
        """Take the last words, then write; a full disk is waited for, a deleted folder is not."""
        if not self._output.drain(_LAST_DRAIN_BYTES) and not records.folder_gone():
            self._loop.after(_RETRY_S, self.begin)
            return
        self._output.close()
        leaf = self._tree.leaf
        if leaf is not None:
            self._kills = leaf.out_of_memory_kills()
            if not leaf.remove():
                self._note(f"{leaf.path} could not be removed: something still lives there")
        self._write()

    def _write(self) -> None:
        record = {
            **self._facts(),
            # The leaf was made for this Run alone: the count began at 0.
            "oom_killed": None if self._kills is None else self._kills > 0,
            **self._output.positions(),
        }
        try:
            records.replace(places.EXIT, record)
        except OSError as error:
            if not records.folder_gone():
                self._note(f"{places.EXIT} waits for the disk: {error}")
                self._loop.after(_RETRY_S, self._write)
                return
        self._over(record)
