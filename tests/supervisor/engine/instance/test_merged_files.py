"""Values in an agent's own files, through a real engine: put in at the start, told where they cannot be, put back."""

import json
import sys
from pathlib import Path

from tests.house import House

from kt_manifest.contract.snapshot import EnvTarget, FileTarget, Rule, Shape
from kt_manifest.home_names import MERGED

JSON = Shape(format="json", merge=True)
TELLS = "import os, time\nprint(open('own.json').read(), os.environ['CONTENT'], flush=True)\ntime.sleep(600)"
OWN = '{"theirs": 1.0, "model": "old"}\n'


def _register(house: House, name: str) -> Path:
    house.register_command(
        name,
        sys.executable,
        "-u",
        "-c",
        TELLS,
        mapping=(
            Rule("model", FileTarget("own.json", "model"), JSON),
            Rule("agent.N", FileTarget("own.json", "limits.n"), JSON),
            Rule(
                "model",
                EnvTarget("CONTENT"),
                Shape(format="json", template='{"m": "${model}", "n": "${agent.N}"}'),
            ),
        ),
        types={"agent.N": "integer"},
    )
    home = house.files.home(name)
    home.mkdir(parents=True, exist_ok=True)
    (home / "own.json").write_text(OWN)
    house.set(name, "model", "${agent.BASE}-5")
    house.set(name, "agent.BASE", "gpt")
    return home


def test_an_agent_finds_the_values_among_its_own_and_gets_its_file_back(house: House) -> None:
    home = _register(house, "merged")
    house.set("merged", "agent.N", "7")

    house.start("merged")
    merged = json.loads((home / "own.json").read_text())
    told = house.until(
        lambda: " ".join(line["text"] for line in house.said("merged")), "it tells what it found"
    )
    house.stop("merged")
    answer = house.ask("DELETE", "/v1/agents/merged?home=retain")

    assert {"theirs": 1.0, "model": "gpt-5", "limits": {"n": 7}} == merged
    assert '"model": "gpt-5"' in told and '{"m":"gpt-5","n":7}' in told
    assert "notices" not in answer
    assert OWN == (home / "own.json").read_text()
    assert not (home / MERGED).exists()


def test_a_start_that_cannot_is_told_and_changes_no_file(house: House) -> None:
    home = _register(house, "refused")
    house.set("refused", "agent.N", "seven")

    unfit = house.refusal("POST", "/v1/agents/refused/start", {"env": {}})
    house.set("refused", "agent.N", "7")
    (home / "own.json").write_text('{\n"theirs": 1\n"model": 2}')
    broken = house.refusal("POST", "/v1/agents/refused/start", {"env": {}})

    assert 'cannot deliver agent.N: got "seven", wanted a whole number' in str(unfit)
    assert "cannot set values in own.json: got line 3: Expecting ',' delimiter" in str(broken)
    assert '{\n"theirs": 1\n"model": 2}' == (home / "own.json").read_text()
    assert not (home / MERGED).exists()


def test_what_cannot_be_put_back_is_told_at_the_removal(house: House) -> None:
    home = _register(house, "kept")
    house.start("kept")
    house.stop("kept")
    (home / "own.json").write_text("{")

    answer = house.ask("DELETE", "/v1/agents/kept?home=retain&force=1")

    assert answer["removed"]
    assert [
        "own.json keeps what kt has put into it: line 1: Expecting property name enclosed in double quotes"
    ] == (answer["notices"])
