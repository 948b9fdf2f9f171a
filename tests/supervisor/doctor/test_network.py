import socket
from pathlib import Path
from typing import Any

import pytest

from kt_supervisor.doctor import network
from kt_supervisor.doctor.finding import Level

BLOCK = list(range(20_000, 20_010))
OUTGOING = range(32_768, 61_000)


def judged(open_ones: Any, **facts: Any) -> Any:
    known = {"own_block": BLOCK, "wanted": {20_001: "bot"}, "served": [20_001], "outgoing": OUTGOING}
    return network.judge_ports(open_ones, **(known | facts))


@pytest.mark.parametrize(
    ("open_ones", "facts", "level", "words"),
    [
        (None, {}, Level.OK, "not known"),
        ({20_001}, {}, Level.OK, "20000-20009"),
        ({20_001}, {"served": []}, Level.BAD, "20001 of bot"),
        ({20_001}, {"served": None}, Level.OK, ""),
        ({20_005}, {}, Level.OK, "1 of them taken"),
        (set(BLOCK), {}, Level.WARN, "9 of 10"),
        (set(), {"outgoing": range(1024, 65_000)}, Level.WARN, "outgoing calls"),
    ],
)
def test_ports_are_judged_by_who_listens_there(open_ones: Any, facts: Any, level: Level, words: str) -> None:
    finding = judged(open_ones, **facts)

    assert level is finding.level
    assert words in finding.found


def test_a_listener_is_seen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))

        seen = network.listening()

        assert seen is not None
        assert server.getsockname()[1] in seen
        assert silent.getsockname()[1] not in seen


def test_the_block_is_the_one_from_which_listeners_get_their_ports(tmp_path: Path) -> None:
    block = network.block(tmp_path)

    assert 200 == len(set(block))
    assert block == network.block(tmp_path)
    assert network.listening([tmp_path / "none"]) is None
