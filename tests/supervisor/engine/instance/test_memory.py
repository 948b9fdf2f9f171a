import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kt_ledger.layout import StateLayout
from kt_manifest.contract import kinds
from kt_manifest.contract.snapshot import EnvTarget, Rule
from kt_supervisor.engine.instance import memory_folder
from kt_supervisor.engine.problems import Refused

SLEEPS = "import time\ntime.sleep(600)"
TELLS = "import os, time\nprint('dir', os.environ.get('MEM'), flush=True)\ntime.sleep(600)"


def _attach(house: Any, kind: str = "filesystem") -> Any:
    return house.ask("PUT", "/v1/agents/bot/memory", {"kind": kind})


def _register_mapped(house: Any) -> None:
    plain = kinds.command(["python3", "-u", "-c", TELLS], interactive=False, observe=False)
    adapter = replace(plain, mapping=(Rule("memory.dir", EnvTarget("MEM")),))
    house.ask("POST", "/v1/agents", {"name": "bot", "adapter": adapter.to_json()})


def test_attached_memory_is_a_folder_with_the_contracts_words(house: Any) -> None:
    house.register("bot", SLEEPS)
    place = house.files.home("bot") / "memory"

    before = house.ask("GET", "/v1/agents/bot/memory")
    attached = _attach(house)
    shown = house.ask("GET", "/v1/agents/bot/memory")

    assert (None, None, None) == (before["kind"], before["guarantee"], before["dir"])
    facts = {
        key: attached[key] for key in ("schema_version", "instance", "kind", "guarantee", "dir", "declared")
    }
    assert facts == {
        "schema_version": 1,
        "instance": "bot",
        "kind": "filesystem",
        "guarantee": "managed_dir_byte_durable",
        "dir": str(place),
        "declared": False,
    }
    assert shown == attached | {"present": True}
    assert 0o40700 == place.stat().st_mode


def test_native_memory_is_a_record_and_makes_no_folder(house: Any) -> None:
    house.register("bot", SLEEPS)

    attached = _attach(house, "native")

    assert ("home_persistence_only", None) == (attached["guarantee"], attached["dir"])
    assert "native" == house.entry("bot")["memory_backing"]
    assert not (house.files.home("bot") / "memory").exists()


def test_the_same_kind_again_changes_nothing_and_another_is_a_conflict(house: Any) -> None:
    house.register("bot", SLEEPS)
    _attach(house)
    (house.files.home("bot") / "memory" / "x").write_text("kept")

    _attach(house)
    conflict = house.refusal("PUT", "/v1/agents/bot/memory", {"kind": "native"})

    assert "kept" == (house.files.home("bot") / "memory" / "x").read_text()
    assert (4, "memory_conflict") == (conflict.exit_code, conflict.code)
    assert "filesystem" == house.ask("GET", "/v1/agents/bot/memory")["kind"]


def test_detaching_forgets_the_record_and_keeps_the_data(house: Any) -> None:
    house.register("bot", SLEEPS)
    _attach(house)
    (house.files.home("bot") / "memory" / "x").write_text("kept")

    detached = house.ask("DELETE", "/v1/agents/bot/memory")
    again = house.ask("DELETE", "/v1/agents/bot/memory")
    _attach(house, "native")

    assert {"schema_version": 1, "instance": "bot", "notices": []} == detached
    assert ["bot had no memory attached"] == again["notices"]
    assert "kept" == (house.files.home("bot") / "memory" / "x").read_text()


def test_nothing_changes_while_the_agent_is_live(house: Any) -> None:
    house.register("bot", SLEEPS)
    house.start("bot")

    attach = house.refusal("PUT", "/v1/agents/bot/memory", {"kind": "native"})
    detach = house.refusal("DELETE", "/v1/agents/bot/memory")

    assert [4, 4] == [attach.exit_code, detach.exit_code]
    assert house.ask("GET", "/v1/agents/bot/memory")["kind"] is None


def test_an_unknown_kind_is_a_mistake_of_the_caller(house: Any) -> None:
    house.register("bot", SLEEPS)

    codes = [
        house.refusal("PUT", "/v1/agents/bot/memory", body).exit_code
        for body in ({"kind": "vector"}, {"kind": None}, {})
    ]

    assert [2, 2, 2] == codes
    assert 3 == house.refusal("GET", "/v1/agents/ghost/memory").exit_code


@pytest.mark.parametrize("kind", ["symbolic link", "file", "fifo"])
def test_whatever_is_no_folder_is_refused_and_left_alone(house: Any, tmp_path: Path, kind: str) -> None:
    house.register("bot", SLEEPS)
    place = house.files.home("bot") / "memory"
    if kind == "symbolic link":
        place.symlink_to(tmp_path)
    elif kind == "file":
        place.write_text("x")
    else:
        os.mkfifo(place)

    refused = house.refusal("PUT", "/v1/agents/bot/memory", {"kind": "filesystem"})

    assert (1, "memory_unusable") == (refused.exit_code, refused.code)
    assert house.ask("GET", "/v1/agents/bot/memory")["kind"] is None
    assert [] == list(tmp_path.iterdir())


def test_a_start_delivers_the_folder_where_it_is_mapped_and_makes_it_again(house: Any) -> None:
    _register_mapped(house)
    attached = _attach(house)
    place = Path(attached["dir"])
    place.rmdir()

    started = house.start("bot")

    said = house.until(lambda: [x["text"] for x in house.said("bot") if "dir " in x["text"]], "it spoke")
    assert f"dir {place}" == said[0]
    assert attached["declared"]
    assert place.is_dir()
    assert not any("memory" in notice for notice in started["notices"])


def test_a_start_says_so_where_it_is_mapped_nowhere(house: Any) -> None:
    house.register("bot", SLEEPS)
    _attach(house)

    started = house.start("bot")

    assert any("memory.dir is mapped nowhere" in notice for notice in started["notices"])


def test_a_start_over_a_symbolic_link_changes_nothing(house: Any, tmp_path: Path) -> None:
    house.register("bot", SLEEPS)
    place = Path(_attach(house)["dir"])
    place.rmdir()
    place.symlink_to(tmp_path)

    refused = house.refusal("POST", "/v1/agents/bot/start", {"env": {"PATH": "/usr/bin:/bin"}})

    assert (1, "memory_unusable") == (refused.exit_code, refused.code)
    assert "registered" == house.entry("bot")["state"]


def test_removal_keeps_the_data_unless_the_home_is_deleted(house: Any) -> None:
    house.register("bot", SLEEPS)
    place = Path(_attach(house)["dir"])
    (place / "x").write_text("kept")

    house.ask("DELETE", "/v1/agents/bot?home=retain")
    kept = (place / "x").read_text()
    house.register("bot", SLEEPS)
    fresh = house.ask("GET", "/v1/agents/bot/memory")["kind"]
    _attach(house)
    house.ask("DELETE", "/v1/agents/bot?home=delete")

    assert ("kept", None) == (kept, fresh)
    assert not place.exists()


def test_a_home_that_is_no_utf8_cannot_carry_a_memory_folder(tmp_path: Path) -> None:
    home = tmp_path / "\udcff"

    with pytest.raises(Refused, match="not UTF-8"):
        memory_folder.ensure(home)
    with pytest.raises(Refused, match="not UTF-8"):
        memory_folder.folder(home, "filesystem")

    assert not home.exists()


def test_a_home_that_was_replaced_by_a_link_is_not_followed(tmp_path: Path) -> None:
    home = StateLayout(tmp_path).home("bot")
    home.parent.mkdir()
    (tmp_path / "elsewhere").mkdir()
    home.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(Refused):
        memory_folder.ensure(home)

    assert [] == list((tmp_path / "elsewhere").iterdir())
