"""Trees made at random from everything a process can do to survive a stop, started and stopped through the engine."""

import os
import random
from pathlib import Path

import pytest
from tests.chaos import evidence
from tests.chaos.tally import Tally
from tests.house import House, until
from tests.supervisor.keeper import test_stop_trees as trees

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

TREES = 30 if "KT_CHAOS" in os.environ else 2


@pytest.mark.chaos
@pytest.mark.long
def test_no_tree_survives_a_stop_or_moves_in_a_pause(
    house: House, tally: Tally, chance: random.Random, tmp_path: Path
) -> None:
    tally.agents = TREES
    for number in range(TREES):
        text = trees.tree(chance)
        nodes = tmp_path / f"nodes-{number}"
        nodes.mkdir()
        name = f"tree-{number}"
        print(name, text)
        house.register(name, trees.NODE, str(nodes), text)
        house.set(name, "restart.policy", "never")
        run_id = house.start(name)["run_id"]
        until(
            lambda nodes=nodes, text=text: len(list(nodes.iterdir())) >= trees.size(text), f"{text} is there"
        )

        if chance.random() < 0.5:
            assert "paused" == house.ask("POST", f"/v1/agents/{name}/pause", {})["state"]
            until(lambda run_id=run_id: evidence.stands_still(house, run_id), f"{text} stands still")
        stopped = house.stop(name, timeout_s=chance.choice((0, 0.2)))

        assert "stopped" == stopped["state"]
        tally.survivors += sum(trees.ours(int(path.name), nodes) for path in nodes.iterdir())
        tally.runs += 1
        tally.spawned += len(list(house.files.runs.iterdir())) - number
