"""The one file of this room that starts processes: keepers and the gateway, each in a session of its own."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import kt_supervisor.keeper
from kt_ledger.layout import StateLayout
from kt_supervisor.engine import environment

AGENT_UMASK = 0o022
"""What an agent's own files get; the keeper sets a stricter one for itself and gives this on."""

_KEEPER = Path(kt_supervisor.keeper.__file__).with_name("__main__.py")


class Spawner:
    """Starts our processes and reaps them without waiting for any."""

    def __init__(self, files: StateLayout) -> None:
        self._files = files
        self._children: set[subprocess.Popen[bytes]] = set()
        self._counting = threading.Lock()  # children are started in threads, and reaped in the event loop

    def engine_command(self) -> tuple[str, ...]:
        """Return the command line by which a keeper brings an engine like this one back."""
        module = (sys.executable, "-m", "kt_supervisor.engine")
        return (*module, "--revive", "--state-dir", str(self._files.root))

    def keeper(
        self, specification: bytes, *, log: Path, handed: tuple[int, ...] = ()
    ) -> subprocess.Popen[bytes]:
        """Start the keeper of one Run and hand it what it is to do; raises OSError.

        Args:
            specification: what `specification.build` made.
            log: where its own words go.
            handed: descriptors that it inherits under the same numbers.
        """
        command = [sys.executable, "-I", "-S", str(_KEEPER)]
        variables = {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}
        keeper = self._start(command, log, variables, subprocess.PIPE, umask=AGENT_UMASK, handed=handed)
        assert keeper.stdin is not None
        try:
            keeper.stdin.write(specification)
            keeper.stdin.close()
        except BrokenPipeError:
            pass  # it has died, and its exit code tells why
        return keeper

    def gateway(self) -> subprocess.Popen[bytes]:
        """Start the gateway of this state directory; raises OSError."""
        self._files.gateway.root.mkdir(mode=0o700, exist_ok=True)
        command = [sys.executable, "-m", "kt_addons", "--state-dir", str(self._files.root)]
        variables = environment.for_our_processes()
        return self._start(command, self._files.gateway.log, variables, subprocess.DEVNULL)

    def reap(self) -> None:
        """Collect those that have ended."""
        with self._counting:
            self._children = {child for child in self._children if child.poll() is None}

    def _start(
        self,
        command: list[str],
        log: Path,
        variables: dict[str, str],
        stdin: int,
        *,
        umask: int = 0o077,
        handed: tuple[int, ...] = (),
    ) -> subprocess.Popen[bytes]:
        said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            child = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=said,
                stderr=said,
                cwd=self._files.root,
                env=variables,
                start_new_session=True,
                umask=umask,
                pass_fds=handed,
            )
        finally:
            os.close(said)
        with self._counting:
            self._children.add(child)
        return child
