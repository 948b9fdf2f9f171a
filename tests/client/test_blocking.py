import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from kt_client.blocking import Client
from kt_client.errors import EngineAway, KtError, NotFound, WrongState, WrongUse

TALKS = "import time\nfor n in range(3): print('line', n, flush=True)\ntime.sleep(600)"


def test_one_agents_life_and_its_refusals(shared_client: Client) -> None:
    with pytest.raises(KtError) as invalid:
        shared_client.register("bot", manifest=shared_client.files.root.parent)
    shared_client.register("bot", kind="command", command=[sys.executable, "-u", "-c", TALKS])
    started = shared_client.start("bot")
    with pytest.raises(WrongState):
        shared_client.start("bot")
    with pytest.raises(NotFound):
        shared_client.show("nobody")
    with pytest.raises(WrongUse):
        shared_client.config_set("bot", "no.such.key", "1")
    shared_client.config_set("bot", "model", "small & quick=1")
    model = shared_client.config_get("bot", "model")["entries"][0]["value"]
    shared_client.config_unset("bot", "model")
    texts = []
    for line in shared_client.logs("bot", follow=True):
        texts.append(line["text"])
        if line["text"] == "line 2":
            break
    stopped = shared_client.stop("bot", timeout_s=5)

    assert 3 == invalid.value.exit_code
    assert "small & quick=1" == model
    assert ["line 0", "line 1", "line 2"] == [text for text in texts if text.startswith("line")]
    assert ("running", "stopped") == (started["state"], stopped["state"])
    assert ["bot"] == [entry["name"] for entry in shared_client.list()["instances"]]
    assert 0 == shared_client.usage("bot")["usage"]["cumulative_input_tokens"]
    assert [] == shared_client.calls("bot")["exchanges"]
    assert shared_client.remove("bot", delete=True)["removed"]


def test_a_manifest_is_judged_by_the_engine(shared_client: Client, tmp_path: Path) -> None:
    (tmp_path / "adapter.toml").write_text('contract_version = "1.0.0"\n')

    with pytest.raises(KtError, match=r"missing \[adapter\]") as caught:
        shared_client.register("bot", manifest=tmp_path)

    assert (1, "manifest_invalid") == (caught.value.exit_code, caught.value.code)
    assert [] == shared_client.list()["instances"]


def test_reading_an_unused_place_makes_nothing(client: Client) -> None:
    assert [] == client.list()["instances"]
    assert 0 == client.usage()["totals"]["total_input_tokens"]
    assert [] == list(client.events())
    with pytest.raises(NotFound):
        next(iter(client.logs("bot")))
    assert {"running": False}.items() <= client.engine_status().items()
    assert not client.files.root.exists()


@pytest.mark.parametrize("key", [None, "logs.cap"])
@pytest.mark.parametrize("reveal", [False, True])
def test_what_holds_for_all_agents_is_the_same_before_and_after_the_first_engine(
    client: Client, shared_client: Client, key: str | None, reveal: bool
) -> None:
    shared_client.engine_start()

    before = client.config_get(None, key, reveal=reveal)

    assert shared_client.config_get(None, key, reveal=reveal) == before
    assert not client.files.root.exists()


def test_the_settings_of_an_unused_place_can_be_read_and_edited_without_an_engine(
    client: Client, shared_client: Client
) -> None:
    shared_client.engine_start()
    places = str(client.files.root), str(shared_client.files.root)
    used = {**shared_client.config_text(None)}
    refusals = []
    for asked in (client, shared_client):
        for ask in (lambda one: one.config_unset(None, "model"), lambda one: one.config_get(None, "model")):
            with pytest.raises(WrongUse) as caught:
                ask(asked)
            refusals.append((caught.value.exit_code, caught.value.code, str(caught.value)))

    assert {**used, "file": used["file"].replace(*reversed(places))} == client.config_text(None)
    assert refusals[0][:2] == refusals[2][:2]
    assert refusals[0][2] == refusals[2][2].replace(*reversed(places))
    assert refusals[1][:2] == refusals[3][:2]
    assert "set it with `kt config set model VALUE`" in refusals[1][2]
    assert not client.files.root.exists()


def test_a_client_that_may_not_start_an_engine_says_that_there_is_none(tmp_path: Path) -> None:
    client = Client(tmp_path / "state", start_engine=False)

    with pytest.raises(EngineAway, match="kt engine start"):
        client.register("bot", kind="mock")

    assert not (tmp_path / "state").exists()


def test_the_engine_that_it_starts_is_nobodys_child(shared_client: Client) -> None:
    pid = shared_client.engine_start()["pid"]

    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

    assert os.getpid() != parent
    assert f"{os.getpid()}" not in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert str(pid) not in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


def test_clients_of_two_places_live_side_by_side_in_many_threads(
    shared_client: Client, tmp_path: Path
) -> None:
    other = Client(tmp_path / "other")
    failures: list[BaseException] = []

    def work(one: Client, name: str) -> None:
        try:
            one.register(name, kind="mock")
            assert name in [entry["name"] for entry in one.list()["instances"]]
        except BaseException as error:
            failures.append(error)

    threads = [
        threading.Thread(target=work, args=(one, f"{place}{n}"))
        for n in range(4)
        for place, one in (("a", shared_client), ("b", other))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    names = [sorted(entry["name"][0] for entry in one.list()["instances"]) for one in (shared_client, other)]
    other.engine_stop(everything=True)

    assert [] == failures
    assert [["a"] * 4, ["b"] * 4] == names


def test_importing_it_changes_nothing_and_loads_nothing_slow(tmp_path: Path) -> None:
    probe = (
        "import os, signal, sys\n"
        "before = dict(os.environ), [signal.getsignal(n) for n in signal.valid_signals()], os.umask(0o22)\n"
        "os.umask(before[2])\n"
        "from kt_client import Client\n"
        f"Client({str(tmp_path / 'state')!r}).list()\n"
        "after = dict(os.environ), [signal.getsignal(n) for n in signal.valid_signals()], os.umask(0o22)\n"
        "slow = [n for n in ('asyncio', 'subprocess', 'aiohttp', 'pydantic', 'click') if n in sys.modules]\n"
        "print(before == after, slow)\n"
    )

    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)

    assert "True []\n" == done.stdout


def test_it_tells_which_version_answered(script: Any, kt: Any) -> None:
    seen: list[str] = []
    script.answer(b"HTTP/1.1 200 OK\r\nkt-version: 9.9\r\ncontent-length: 2\r\n\r\n{}")

    Client(kt.state, hears_version=seen.append).engine_status()

    assert ["9.9"] == seen


def test_logs_are_read_from_their_end_by_stream_and_on_from_a_position(shared_client: Client) -> None:
    code = "import sys\nfor n in range(5): print(n, flush=True); print(-n, file=sys.stderr, flush=True)"
    shared_client.register(
        "said", kind="command", command=[sys.executable, "-c", f"{code}\nimport time; time.sleep(1)"]
    )
    shared_client.start("said")
    list(shared_client.logs("said", follow=True))

    out = list(shared_client.logs("said", streams=("out",)))
    last = [line["text"] for line in shared_client.logs("said", streams=("err",), tail=2)]
    rest = [line["text"] for line in shared_client.logs("said", streams=("out",), after=out[2]["position"])]

    assert (["0", "1", "2", "3", "4"], ["-3", "-4"], ["3", "4"]) == (
        [line["text"] for line in out],
        last,
        rest,
    )


def test_memory_is_attached_shown_and_detached(shared_client: Client) -> None:
    shared_client.register("thinks", kind="command", command=["true"])

    attached = shared_client.memory_attach("thinks", "filesystem")
    shown = shared_client.memory_show("thinks")
    shared_client.memory_detach("thinks")

    assert "managed_dir_byte_durable" == attached["guarantee"]
    assert attached["dir"] == shown["dir"]
    assert shared_client.memory_show("thinks").get("kind") is None
