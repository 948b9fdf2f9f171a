"""Where the demo finds its files and keeps its state."""

from pathlib import Path

from kt_client.errors import KtError
from kt_ledger import exit_codes

HERE = Path(__file__).resolve().parent
AGENTS = HERE / "agents"


def fixtures() -> Path:
    """Return the folder that holds `wire`: beside this file in an installation, at the top in a checkout.

    Raises:
        KtError: exit 1, where neither is there.
    """
    for place in (HERE / "fixtures", HERE.parents[2] / "fixtures"):
        if (place / "wire").is_dir():
            return place
    raise KtError(
        f"got no recorded traffic in {HERE / 'fixtures'}, wanted what the package ships; install ktmeter again",
        exit_code=exit_codes.FAILED,
    )


def check_state_dir(given: Path) -> Path:
    """Return the state directory for a demo that is kept.

    Raises:
        KtError: exit 2, where it is relative or holds anything already: a demo never mixes with a real fleet.
    """
    if not given.is_absolute():
        raise KtError(
            f"got --state-dir {given}, wanted an absolute path; write {given.absolute()}",
            exit_code=exit_codes.USAGE,
        )
    if given.exists() and (not given.is_dir() or any(given.iterdir())):
        raise KtError(
            f"got --state-dir {given}, which is not empty, wanted a new or empty directory; the demo does not mix with "
            "other agents: choose another",
            exit_code=exit_codes.USAGE,
        )
    return given
