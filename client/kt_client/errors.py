"""What goes wrong, by kind: each carries a sentence for people, and `exit_code` and `code` for programs.

`exit_code` is the contract's, 0-6, the same that the command ends with; `code` is one word, finer than that. They have
one common base, `KtError`, because a program that drives agents wants to catch all of it in one place.
"""

from kt_ledger.exit_codes import FAILED, NOT_FOUND, TIMED_OUT, UNSUPPORTED, USAGE, WRONG_STATE

ENGINE_LOST = "engine_lost"


class KtError(Exception):
    """What was asked was not done."""

    def __init__(self, message: str, *, exit_code: int = FAILED, code: str = "failed") -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.code = code


class WrongUse(KtError):
    """A bad or taken name, an unknown kind or key, a bad value."""


class NotFound(KtError):
    """No agent of this name is registered, or there is no manifest where one was named."""


class WrongState(KtError):
    """The agent is in a state in which this cannot be done, or something of it does not end."""


class Unsupported(KtError):
    """This agent, this system or this engine cannot do that."""


class TimedOut(KtError):
    """The agent did not take its input in time."""


class InsideAnAgent(KtError):
    """The caller is a managed agent: it may read what concerns itself, and nothing else."""


class EngineAway(KtError):
    """Nobody listens at the engine's socket."""


class EngineLost(KtError):
    """The engine was there and ended in mid-answer; what was asked may have been done."""


class EngineLate(KtError):
    """The engine did not answer in time; what was asked may have been done, or may still be."""


class EngineUnavailable(KtError):
    """An engine could not be started."""


_BY_CODE: dict[str, type[KtError]] = {"inside_an_agent": InsideAnAgent}
_BY_EXIT_CODE: dict[int, type[KtError]] = {
    USAGE: WrongUse,
    NOT_FOUND: NotFound,
    WRONG_STATE: WrongState,
    UNSUPPORTED: Unsupported,
    TIMED_OUT: TimedOut,
}


def refusal(message: str, *, exit_code: int, code: str) -> KtError:
    """Return the engine's refusal as the exception of its kind."""
    kind = _BY_CODE.get(code) or _BY_EXIT_CODE.get(exit_code, KtError)
    return kind(message, exit_code=exit_code, code=code)


def lost(error: Exception) -> KtError:
    """Return how an answer that stopped, or never came, is told."""
    late = isinstance(error, TimeoutError)
    kind = EngineLate if late else EngineLost
    return kind(
        f"the engine {'did not answer in time' if late else f'went away in mid-answer ({error})'}; what was asked may "
        f"have been done: look with `kt agent list`, and at engine.log in the state directory",
        code="engine_late" if late else ENGINE_LOST,
    )


def unreachable(error: OSError, where: object) -> KtError:
    """Return how a socket that cannot be connected to is told: nobody there, or not for us."""
    if isinstance(error, FileNotFoundError | ConnectionRefusedError | NotADirectoryError):
        return EngineAway(
            f"no engine answers at {where}: got {error.strerror or error}, wanted one that runs; start it: "
            f"kt engine start",
            code="engine_away",
        )
    return KtError(
        f"cannot reach the engine: got {error.strerror or error} at {where}, wanted a socket of our own; "
        f"check who owns the state directory and its permissions",
        code="engine_unreachable",
    )
