"""The names of a Run's files, relative to its folder, which is the keeper's working directory.

`kt_ledger.layout` says where everything lives; its dataclasses and pathlib would cost each Run 2 MB of memory, so the
keeper spells the names out, and a test holds both to each other. Relative names also make sockets reachable at any
path length.
"""

RUNS = "runs"
LOCK = "lock"
RUN = "run.json"
EXIT = "exit.json"
SOCKET = "keeper.sock"
LOG = "keeper.log"
COMMANDS = "commands.log"
KEEPER_LOCK = "keeper.lock"
STDIN = "in.fifo"

ENGINE_STOPPED = "engine.stopped"
ENGINE_SOCKET = "engine.sock"
ENGINE_LOG = "engine.log"
ENGINE_WAKING = "engine.waking"


def run_folder(state_dir: str, run_id: str) -> str:
    """Return the folder of a Run."""
    return f"{state_dir}/{RUNS}/{run_id}"


def segment(stream: str, number: int) -> str:
    """Return the log segment of `stream` ("out" or "err"); numbers begin at 1."""
    return f"{stream}-{number:06d}.log"


def segment_numbers(stream: str, names: list[str]) -> list[int]:
    """Return the numbers of the log segments of `stream` among file names."""
    beginning, end = f"{stream}-", ".log"
    found = [
        name[len(beginning) : -len(end)]
        for name in names
        if name.startswith(beginning) and name.endswith(end)
    ]
    return [int(number) for number in found if number.isdecimal()]


def index(stream: str, number: int) -> str:
    """Return the time index of that segment: pairs (offset, wall-clock ns), little-endian u64."""
    return f"{stream}-{number:06d}.idx"
