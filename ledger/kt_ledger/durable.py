"""Making bytes durable: one function for files, one for replacing a file as a whole."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # at run time pathlib would cost each keeper 0.7 MB of memory for an annotation
    from pathlib import Path

_F_FULLFSYNC = 51  # macOS: fsync() alone leaves bytes in the drive's cache (fsync(2) there says so)


def durable(descriptor: int) -> None:
    """Return once everything written to `descriptor` survives a power cut.

    Raises:
        OSError: the kernel could not; never retry on the same descriptor, its dirty pages may be gone
            (fsync(2), "fsyncgate").
    """
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(descriptor, _F_FULLFSYNC)
    else:
        os.fdatasync(descriptor)


def replace_file(path: "Path", data: bytes, *, mode: int = 0o600) -> None:
    """Write `path` whole or not at all: a new file, made durable, renamed over, its folder made durable."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
        fresh.rename(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
