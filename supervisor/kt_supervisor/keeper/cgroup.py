"""The agent's own cgroup (v2, cgroups(7)): one leaf that holds the agent's tree and nothing of ours.

A process cannot leave it by fork, setsid or exec, which is what makes it better than a scan: freezing and killing it
are atomic. Files are the kernel's; nothing here outlives `remove`.
"""

import os

from kt_supervisor.keeper import loop

_NAMES_ADDED = "+memory +pids +cpu"
_ROUNDS = 50
_LOOK_S = 0.002


class Leaf:
    """A cgroup folder. Reading what is not there gives an empty answer; writing raises OSError."""

    def __init__(self, path: str) -> None:
        self.path = path

    def write(self, name: str, value: str) -> None:
        """Write a control file.

        Raises:
            OSError: the kernel lacks it, refuses the value, or we may not.
        """
        descriptor = os.open(f"{self.path}/{name}", os.O_WRONLY)
        try:
            os.write(descriptor, value.encode())
        finally:
            os.close(descriptor)

    def enter(self, pid: int) -> None:
        """Move a process, with all its threads, in here. Raises OSError."""
        self.write("cgroup.procs", str(pid))

    def freeze(self, on: bool) -> None:
        """Begin to freeze or thaw everything in here (Linux 5.2); `frozen` tells when it is so. Raises OSError."""
        self.write("cgroup.freeze", str(int(on)))

    def freezing(self) -> bool:
        """Return whether it was told to be frozen."""
        return read(f"{self.path}/cgroup.freeze").strip() == b"1"

    def frozen(self) -> bool:
        """Return whether everything in here stands still."""
        return self._event(b"frozen") == 1

    def populated(self) -> bool:
        """Return whether anything lives in here or below."""
        return self._event(b"populated") == 1

    def kill(self) -> bool:
        """Kill everything in here and below at once (cgroup.kill, Linux 5.14); False where that cannot be."""
        try:
            self.write("cgroup.kill", "1")
        except OSError:
            return False
        return True

    def members(self) -> list[int]:
        """Return the pids in here and below."""
        found: list[int] = []
        for folder in _folders(self.path):
            found += [int(word) for word in read(f"{folder}/cgroup.procs").split()]
        return found

    def out_of_memory_kills(self) -> int | None:
        """Return how many processes the kernel killed for `memory.max`; None where memory is not controlled."""
        return _field(read(f"{self.path}/memory.events"), b"oom_kill")

    def remove(self) -> bool:
        """Remove the leaf and what the agent made below it; False where something still lives there."""
        for _ in range(_ROUNDS):
            if self._removed():
                return True
            if self.populated():
                return False
            loop.pause(_LOOK_S)  # the last one is gone, and the kernel has not put it away yet
        return False

    def _removed(self) -> bool:
        try:
            for folder in reversed(_folders(self.path)):
                os.rmdir(folder)
        except OSError:
            return not os.path.exists(self.path)
        return True

    def _event(self, name: bytes) -> int | None:
        return _field(read(f"{self.path}/cgroup.events"), name)


def create(parent: str, name: str) -> Leaf:
    """Return a new leaf below `parent`, with every controller that can be passed down to it.

    Raises:
        OSError: no cgroup v2 folder, or we may not.
    """
    if not os.path.exists(f"{parent}/cgroup.subtree_control"):
        raise FileNotFoundError(f"{parent} is no cgroup v2 folder")
    above = Leaf(parent)
    for controller in _NAMES_ADDED.split():
        try:
            above.write("cgroup.subtree_control", controller)
        except OSError:
            pass  # not delegated, or not there: `limits` says what is not enforced
    path = f"{parent}/{name}"
    try:
        os.mkdir(path, 0o755)
    except FileExistsError:
        if Leaf(path).populated():
            raise
    return Leaf(path)


def read(path: str) -> bytes:
    """Return the content of a small file; empty where it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    data = b""
    try:
        while more := os.read(descriptor, 1 << 16):
            data += more
    except OSError:
        pass
    finally:
        os.close(descriptor)
    return data


def _field(data: bytes, name: bytes) -> int | None:
    for line in data.splitlines():
        key, _, value = line.partition(b" ")
        if key == name:
            return int(value)
    return None


def _folders(path: str) -> list[str]:
    # Parents before children.
    found = [path]
    for folder in found:
        try:
            with os.scandir(folder) as entries:
                found += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
    return found
