"""Removals that are cut short: an engine that dies at each step, and the one after it."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.house import House

from kt_client.errors import EngineAway
from kt_client.errors import KtError as Failure
from kt_ledger.layout import StateLayout
from kt_supervisor.engine import failpoints
from kt_supervisor.engine.instance import removal
from kt_supervisor.engine.instance.removal import Intent

SAYS = "import time\nprint('clear-text-of-the-agent')\ntime.sleep(600)"
CLEAR = b"clear-text-of-the-agent"
NOBODY = 65534
STEPS = ("kept", "home_moved", "moved", "marked", "deleted")


def intent(**more: Any) -> Intent:
    return Intent(instance_id="i", name="bot", at_ns=1, **{"delete": True, **more})


def holders(root: Path) -> list[str]:
    return [
        str(path.relative_to(root))
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.startswith("ledger.db") and CLEAR in path.read_bytes()
    ]


def boot_to_die(house: House, point: str, name: str) -> None:
    house.variables = {"KT_ENGINE_FAILPOINT": f"removal_{point}:{name}"}
    house.boot()
    house.variables = {}


def live_and_stop(house: House, name: str) -> str:
    """Have an agent that has printed, and whose Home holds something; return its id."""
    house.register(name, SAYS)
    house.start(name)
    house.until(lambda: any("clear-text" in line["text"] for line in house.said(name)), "it has spoken")
    house.stop(name)
    (house.files.home(name) / "merged.toml").write_bytes(CLEAR)
    return str(house.entry(name)["id"])


def die_removing(house: House, name: str, *, home: str = "delete") -> None:
    pid = house.engine_pid()
    with pytest.raises((EngineAway, Failure)):
        house.ask("DELETE", f"/v1/agents/{name}?home={home}&force=0")
    house.until(lambda: house.is_gone(pid), "the engine has died")
    house.reap()


def nothing_is_left(house: House, id_: str) -> None:
    def left() -> list[str]:
        return [str(path) for path in house.root.rglob(f"*{id_}*")] + holders(house.root)

    house.until(lambda: not left(), lambda: f"nothing is left: {left()}; {house.evidence()}")


def test_an_engine_that_dies_at_any_step_is_followed_by_one_that_finishes(empty_house: House) -> None:
    """Each engine finishes what the one before it began, and dies at the next step of another removal."""
    house, before = empty_house, ""
    for step in STEPS:
        boot_to_die(house, step, step)
        if before:
            nothing_is_left(house, before)
        before = live_and_stop(house, step)
        die_removing(house, step)

    # the one that finishes dies as well, at the same step
    house.variables = {"KT_ENGINE_FAILPOINT": f"removal_{STEPS[-1]}:{STEPS[-1]}"}
    house.spawn().wait(40)
    house.variables = {}
    house.boot()

    nothing_is_left(house, before)
    assert [] == house.ask("GET", "/v1/agents")["instances"]
    assert [] == list((house.root / "agents").iterdir())


def test_what_the_ledger_never_freed_is_still_there_and_what_it_freed_is_forgotten(
    empty_house: House,
) -> None:
    house = empty_house
    boot_to_die(house, "intended", "bot")
    kept = live_and_stop(house, "bot")
    die_removing(house, "bot")
    boot_to_die(house, "kept", "bot")
    there = house.entry("bot")["id"]
    intents = list(house.files.removals.iterdir())

    die_removing(house, "bot", home="retain")
    house.boot()

    assert (kept, []) == (there, intents)
    assert [] == house.ask("GET", "/v1/agents")["instances"]
    house.until(lambda: not list(house.files.removals.iterdir()), "the removal is finished")
    assert not house.files.environment(kept).exists()
    assert not house.files.started(kept).exists()
    assert (house.files.home("bot") / "merged.toml").exists()


def test_every_step_has_its_claim() -> None:
    assert failpoints.POINTS == {f"removal_{step}" for step in (*STEPS, "intended")}


def test_a_name_that_was_registered_again_keeps_its_new_home(state: StateLayout, new_run: Any) -> None:
    new_run(1, "r1")
    (state.home("bot")).mkdir(parents=True)
    (state.removed_home("i") / "deep").mkdir(parents=True)
    removal.intend(state, intent())

    aside = removal.set_aside(state, intent(), free=False)
    notices = removal.finish(state, aside)

    assert ((), True) == (notices, state.home("bot").is_dir())
    assert not state.removed_home("i").exists()
    assert [] == [*state.runs.iterdir(), *state.removals.iterdir()]


def test_a_home_that_was_moved_once_is_not_looked_for_again(state: StateLayout) -> None:
    """Its name may have been given to another since, who was removed and wanted to keep theirs."""
    state.home("bot").mkdir(parents=True)
    removal.intend(state, intent(moved=True))
    [found] = removal.pending(state)

    removal.finish(state, removal.set_aside(state, found, free=True))

    assert state.home("bot").is_dir()
    assert [] == removal.pending(state)


@pytest.fixture
def no_roots_state() -> Iterator[StateLayout]:
    """A state directory of a user whom permissions stop: root deletes everything."""
    root, uid = Path(tempfile.mkdtemp(prefix="kt-")), os.geteuid()
    if uid == 0:
        os.chown(root, NOBODY, -1)
        os.seteuid(NOBODY)
    yield StateLayout(root)
    os.seteuid(uid)
    shutil.rmtree(root)


def test_what_cannot_be_deleted_is_told_and_tried_again(no_roots_state: StateLayout) -> None:
    state = no_roots_state
    locked = state.home("bot") / "locked"
    locked.mkdir(parents=True)
    (locked / "file").touch()
    locked.chmod(0o500)
    removal.intend(state, intent())

    [notice] = removal.carry_out(state, intent())
    [again] = removal.pending(state)
    (state.removed_home("i") / "locked").chmod(0o700)

    assert ".removed-i could not be deleted" in notice
    assert again.moved
    assert () == removal.finish(state, again)
    assert [] == [*state.removals.iterdir(), *state.home("bot").parent.iterdir()]


def test_a_home_that_is_a_link_goes_without_what_it_leads_to(state: StateLayout, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    state.home("bot").parent.mkdir()
    state.home("bot").symlink_to(elsewhere)
    removal.intend(state, intent())

    assert () == removal.carry_out(state, intent())

    assert elsewhere.is_dir()
    assert not state.home("bot").is_symlink()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema_version": 2, "name": "bot", "delete": true, "at_ns": 1, "moved": false}',
        '{"schema_version": 1, "name": "../bot", "delete": true, "at_ns": 1, "moved": false}',
        '{"schema_version": 1, "name": "bot", "delete": "yes", "at_ns": 1, "moved": false}',
    ],
)
def test_an_intent_that_makes_no_sense_deletes_nothing(state: StateLayout, text: str) -> None:
    state.removals.mkdir()
    state.removal("i").write_text(text)
    (state.removals / ".j.json.1.new").write_text("half")

    assert [] == removal.pending(state)


def test_what_is_removed_by_an_engine_that_lives_leaves_no_intent(house: Any) -> None:
    id_ = live_and_stop(house, "bot")

    answer = house.ask("DELETE", "/v1/agents/bot?home=delete")

    assert {"name": "bot", "removed": True, "home": "delete"} == {
        key: answer[key] for key in ("name", "removed", "home")
    }
    assert [] == [str(path) for path in house.root.rglob(f"*{id_}*")]
