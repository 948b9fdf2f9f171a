"""What is asked of a state directory once a recipe is over and its engine has ended: the files themselves."""

import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

from tests.chaos.tally import Tally
from tests.house import House

from kt_supervisor.keeper import proctree


def total(house: House, name: str) -> dict[str, Any]:
    """Return what an agent says that it did."""
    found: dict[str, Any] = json.loads((house.files.home(name) / "total.json").read_bytes())
    return found


def spawns(house: House, name: str) -> list[str]:
    """Return the Run of each time that an agent was started."""
    noted = house.files.home(name) / "spawned"
    return noted.read_text().split() if noted.exists() else []


def sequences(house: House, run_id: str) -> list[int]:
    """Return the numbers of the reports that the ledger holds of a Run."""
    found = query(
        house,
        "SELECT e.key FROM events e JOIN scopes s ON e.scope = s.id WHERE s.run_id = ? AND s.source = ?",
        run_id,
        "self-reported",
    )
    return [int(key) for (key,) in found]


def runs(house: House, name: str) -> list[str]:
    """Return the Runs that the ledger holds of an agent."""
    found = query(
        house,
        "SELECT r.id FROM runs r JOIN instances i ON r.instance_id = i.id WHERE i.name = ? ORDER BY r.id",
        name,
    )
    return [run_id for (run_id,) in found]


def query(house: House, statement: str, *values: Any) -> list[Any]:
    """Read the ledger; an engine that lives has locked it."""
    ledger = sqlite3.connect(f"file:{house.files.database}?mode=ro", uri=True, timeout=30)
    try:
        return ledger.execute(statement, values).fetchall()
    finally:
        ledger.close()


def stands_still(house: House, run_id: str) -> bool:
    """Tell whether an agent's whole tree is frozen: its cgroup says so, or every process is stopped."""
    record = house.run_record(run_id)
    if folder := record.get("cgroup"):
        return "frozen 1" in (Path(folder) / "cgroup.events").read_text()
    tree = [proctree.read(record["agent_pid"]), *proctree.descendants(record["keeper_pid"])]
    living = [process for process in tree if process is not None and process.alive()]
    return bool(living) and all(process.stopped() or process.state == b"D" for process in living)


def printed(house: House, run_id: str) -> tuple[int, str]:
    """Return the length and the digest of all that is kept of a Run's standard output."""
    digest, size = hashlib.sha256(), 0
    for segment in sorted(house.files.run(run_id).root.glob("out-*.log")):
        data = segment.read_bytes()
        digest.update(data)
        size += len(data)
    return size, digest.hexdigest()


def count_spawns(house: House, name: str, tally: Tally) -> None:
    """Compare how often an agent was started with the Runs that it had: none twice, none that nobody knows.

    A Run may have none: its engine died before its keeper came, or it was stopped before its first line was run.
    """
    begun = spawns(house, name)
    assert set(begun) <= set(runs(house, name)), name
    tally.runs += len(set(begun))
    tally.spawned += len(begun)


def judge_printer(house: House, name: str, run_id: str, tally: Tally, *, usage: Any) -> None:
    """Compare what a printing agent said with what the ledger holds of it."""
    said = total(house, name)["lines"]
    kept = sequences(house, run_id)
    tally.expected += said
    missing = sorted(set(range(said)) - set(kept))
    if missing:
        print(f"{name}: {len(missing)} of {said} reports are missing, {missing[0]} to {missing[-1]}")
    tally.lost += len(missing)
    inputs = sum(n % 97 for n in range(said))
    if len(kept) > said or usage["cumulative_output_tokens"] > said:
        tally.doubled += max(len(kept), usage["cumulative_output_tokens"]) - said
    assert said - tally.lost <= usage["cumulative_output_tokens"]
    if not tally.lost:
        assert (inputs, said) == (usage["cumulative_input_tokens"], usage["cumulative_output_tokens"])


def executable(path: Path, text: str) -> Path:
    """Write a program."""
    path.write_text(text)
    path.chmod(0o755)
    return path
