"""What goes wrong, as the control API tells it: a code, an exit code of the contract, and one sentence.

Exceptions of other rooms are translated here, by their exit code, and nowhere else.
"""

from dataclasses import dataclass

from kt_ledger import exit_codes
from kt_ledger.exit_codes import FAILED, NOT_FOUND, TIMED_OUT, UNSUPPORTED, USAGE, WRONG_STATE
from kt_ledger.store import NameTaken, StoreUnavailable

HTTP_STATUS = {
    FAILED: 500,
    USAGE: 400,
    NOT_FOUND: 404,
    WRONG_STATE: 409,
    UNSUPPORTED: 501,
    TIMED_OUT: 504,
}


class Refused(Exception):
    """An operation was not done; the message says what was got, what was wanted and what to do."""

    def __init__(self, message: str, *, code: str, exit_code: int = FAILED) -> None:
        self.code = code
        self.exit_code = exit_code
        super().__init__(message)


class NoSuchAgent(Exception):
    """No instance of this name is registered."""

    exit_code = NOT_FOUND

    def __init__(self, name: str) -> None:
        super().__init__(
            f"no agent named {name}: wanted a registered one; `kt agent list` names them, "
            f"`kt agent register {name} ...` makes one"
        )


@dataclass(frozen=True, slots=True)
class Problem:
    """One refusal as it is sent."""

    status: int
    code: str
    exit_code: int
    message: str

    def to_json(self) -> dict[str, object]:
        """Return the body of the answer."""
        return {
            "schema_version": 1,
            "error": {"code": self.code, "exit_code": self.exit_code, "message": self.message},
        }


def of(error: Exception) -> Problem | None:
    """Return how an exception is told; None for one that nobody expected."""
    if isinstance(error, StoreUnavailable):
        return Problem(503, exit_codes.word(error), FAILED, str(error))
    if isinstance(error, NameTaken):
        return Problem(409, "name_taken", USAGE, str(error))
    exit_code = getattr(error, "exit_code", None)
    if isinstance(exit_code, int) and exit_code in HTTP_STATUS:
        return Problem(HTTP_STATUS[exit_code], exit_codes.word(error), exit_code, str(error))
    return None


STILL_WAITS = "a keeper that still waits for the tree to be empty"


class StopUnconfirmed(Exception):
    """Something of the agent could not be ended; asking again looks again."""

    exit_code = WRONG_STATE
    code = "stop_unconfirmed"

    def __init__(self, name: str, got: str) -> None:
        super().__init__(
            f"the stop of {name} is not confirmed: got {got}; wanted nothing of it left; look at that, then "
            f"`kt agent stop {name}` again"
        )
