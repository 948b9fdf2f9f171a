"""A start that came to nothing, as it is told: why, the exit code where there is one, and the agent's last lines."""

from kt_ledger.exit_codes import FAILED
from kt_supervisor.engine.instance.readiness import NotReady
from kt_supervisor.engine.output import run_logs
from kt_supervisor.engine.output.known_secrets import KnownSecrets
from kt_supervisor.engine.output.run_logs import KnownRun
from kt_supervisor.engine.run.ending import Exit


class LaunchFailed(Exception):
    """The agent did not start; the message has its exit code and its last lines where it got so far."""

    exit_code = FAILED
    code = "launch_failed"

    def __init__(self, message: str, *, detail: str) -> None:
        self.detail = detail
        super().__init__(message)


def explain(name: str, run: KnownRun, error: Exception, ended: Exit, *, known: KnownSecrets) -> LaunchFailed:
    """Return a failed start as it is told: why, the exit code, the last lines; without the secrets that are known."""
    told = _explain(name, run, error, ended)
    return LaunchFailed(known.clean(str(told)), detail=known.clean(told.detail))


def _explain(name: str, run: KnownRun, error: Exception, ended: Exit) -> LaunchFailed:
    said = run_logs.last_lines(run)
    shown = "; its last lines:\n  " + "\n  ".join(said) if said else ""
    if ended.spawn_error:
        return LaunchFailed(f"{name} did not start: {ended.spawn_error}{shown}", detail=ended.spawn_error)
    if not isinstance(error, NotReady):
        detail = str(error) or type(error).__name__
        return LaunchFailed(f"{name} did not start: {detail}{shown}", detail=detail)
    how = error.got
    if error.ended and (ended.code is not None or ended.signal is not None):
        how += f" with exit code {ended.code}" if ended.signal is None else f" with signal {ended.signal}"
    told = (
        f"{name} did not start: got one that {how}, wanted {error.wanted}; correct it and start again{shown}"
    )
    return LaunchFailed(told, detail=f"it {how}")
