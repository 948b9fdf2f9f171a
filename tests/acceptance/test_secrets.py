"""Where a secret may stand, and where it must not: looked for in everything that a state directory and kt show."""

import http.server
import json
import os
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.house import House

from kt_client.blocking import Client
from kt_ledger import unix_socket

KEY, TOLD, PLAIN = "canary-provider-5f81", "canary-of-agent-77aa", "canary-unrelated-0c2d"
LEDGER = ("ledger.db", "ledger.db-wal", "ledger.db-shm")
"""Holds the token of each Run by design, and no other secret."""

SPEAKS = """
import http.client, os, sys, time
from urllib.parse import urlsplit
base = urlsplit(os.environ["OPENAI_BASE_URL"])
token = base.path.split("/")[1]
told = os.environ["HEADER"].split()[1]
def say(text, stream=sys.stdout):
    stream.write(text); stream.flush()
say("header " + os.environ["HEADER"] + "\\n")
say("token " + token + "\\n")
say("on stderr " + told[:9], sys.stderr); time.sleep(0.2); say(told[9:] + "\\n", sys.stderr)
say('KTESIO_USAGE {"sequence": 0, "input_tokens": 3, "output_tokens": 4, "model": "%s"}\\n' % told)
while True:
    if os.path.exists("ask"):
        os.unlink("ask")
        c = http.client.HTTPConnection(base.netloc, timeout=30)
        c.request("POST", base.path + "/chat/completions", '{"model": "m", "messages": []}',
                  {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
        say("answered %d %s\\n" % ((a := c.getresponse()).status, a.read().decode()))
    if os.path.exists("die"):
        os.unlink("die")
        say("my last words: " + told)
        sys.exit(7)
    time.sleep(0.02)
"""


class Provider(http.server.BaseHTTPRequestHandler):
    """A provider that remembers with which key it was called, and is so careless as to say it."""

    keys: list[str]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.keys.append(self.headers["authorization"])
        body = json.dumps({"error": {"message": f"no such key: {self.keys[-1]}"}}).encode()
        self.send_response(401)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    house = House(tmp_path_factory.mktemp("secrets") / "state").boot()
    yield house
    house.end()


@pytest.fixture(scope="module")
def provider() -> Iterator[Any]:
    Provider.keys = []
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Provider)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def caller(**more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "UNRELATED_CANARY": PLAIN, **more}


def register(place: House, provider: Any, name: str = "bot") -> None:
    """Register the agent, its key in secrets.toml and its own secret in the caller's environment."""
    manifest = place.root / "adapter.toml"
    argv = json.dumps(["-u", "-c", SPEAKS])
    manifest.write_text(
        'contract_version = "1.0.0"\n[adapter]\nkind = "speaks"\n'
        f"[lifecycle.start]\nexec = {json.dumps(sys.executable)}\nargs = {argv}\n"
        '[capabilities.interaction]\nlinux = "guaranteed"\nmacos = "guaranteed"\n'
        '[metering]\nsource = "engine-observed"\n'
        '[config."metering.base_url"]\nenv = "OPENAI_BASE_URL"\n'
        '[config."metering.upstream_api_key"]\nenv = "OPENAI_API_KEY"\n'
        '[config.model]\nfile = { path = "agent.toml", key = "model" }\n'
    )
    Client(place.root).register(name, manifest=manifest)
    port = provider.server_address[1]
    for key, value in (
        ("metering.upstream_base_url", f"http://127.0.0.1:{port}/v1"),
        ("metering.upstream_api_key", "secret:PROVIDER_KEY"),
        ("agent.HEADER", "Bearer ${secret:TOLD_KEY}"),
        ("model", "m-${secret:TOLD_KEY}"),
    ):
        Client(place.root).config_set(name, key, value)
    kt(place, "secret", "set", "PROVIDER_KEY", typed=KEY + "\n")


def kt(place: House, *words: str, typed: str = "", code: int = 0, **variables: str) -> str:
    """Run the command; return all that it said."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("KT", "HEKMA"))}
    done = subprocess.run(
        [sys.executable, "-m", "kt_cli.main", *words],
        input=typed,
        capture_output=True,
        text=True,
        timeout=60,
        env={**kept, "KTESIO_STATE_DIR": str(place.root), **variables},
    )
    assert code == done.returncode, done
    return done.stdout + done.stderr


def said(place: House) -> list[str]:
    return [line["text"] for line in place.said("bot") if line["stream"] != "engine"]


def ask(place: House, provider: Any, name: str = "bot") -> str:
    """Have the agent make one call; return the key that it came with."""
    before = len(Provider.keys)
    (place.files.home(name) / "ask").touch()
    House.until(lambda: len(Provider.keys) > before, "the agent has called")
    return str(Provider.keys[-1])


def holders(root: Path, *canaries: str, but_not: tuple[str, ...] = ()) -> list[str]:
    """Return which files of a state directory hold one of these, apart from the operator's own."""
    wanted = [canary.encode() for canary in canaries]
    found = []
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.name not in ("secrets.toml", *but_not):
            data = path.read_bytes()
            found += [str(path.relative_to(root)) for canary in wanted if canary in data]
    return found


def test_the_life_of_a_secret(place: House, provider: Any) -> None:
    """One agent, told its secrets, prints all of them, is rotated, fails, and is looked for everywhere."""
    register(place, provider)
    started = Client(place.root).start("bot", env=caller(TOLD_KEY=TOLD))
    token = place.ask("GET", "/v1/engine") and run_token(place)
    place.until(
        lambda: any("answered" in line for line in said(place)) or ask(place, provider), "it has called"
    )
    place.until(lambda: len(said(place)) >= 5, lambda: f"it has said everything: {said(place)}")

    lines = said(place)
    stars = "*" * len(TOLD)
    assert f"header Bearer {stars}" in lines
    assert f"token {'*' * len(token)}" in lines
    assert f"on stderr {stars}" in lines
    assert f"Bearer {KEY}" == Provider.keys[0]
    assert any(line.startswith("answered 401") and "*" * len(KEY) in line for line in lines)
    usage = place.entry("bot")["usage"]["sources"]["self-reported"]
    assert (3, 4) == (usage["input_tokens"], usage["output_tokens"])

    # rotated while it runs: the next call carries the new key, and no process was started
    told = kt(place, "secret", "set", "PROVIDER_KEY", typed=KEY + "-new\n")
    assert "bot: its calls carry the new key from now on." in told
    assert f"Bearer {KEY}-new" == ask(place, provider)
    assert started["run_id"] == place.entry("bot")["run_id"]

    # removed while it runs: it is said who goes on with it, also where the setting names another one by then
    removed = kt(place, "secret", "rm", "PROVIDER_KEY")
    assert "bot runs, and its calls go on with the key that it has until it is restarted" in removed
    assert "kt secret set PROVIDER_KEY" in removed
    assert f"Bearer {KEY}-new" == ask(place, provider)
    kt(place, "secret", "set", "PROVIDER_KEY", typed=KEY + "-new\n")
    place.set("bot", "metering.upstream_api_key", "secret:ANOTHER_KEY")
    removed = kt(place, "secret", "rm", "PROVIDER_KEY", "--json")
    document = json.loads(removed[: removed.rindex("}") + 1])
    assert (["bot"], []) == (document["keeping"], document["rekeyed"])
    assert ["bot was started with PROVIDER_KEY"] == [told.partition(",")[0] for told in document["notices"]]
    place.set("bot", "metering.upstream_api_key", "secret:PROVIDER_KEY")
    kt(place, "secret", "set", "PROVIDER_KEY", typed=KEY + "-new\n")

    # an engine that did not begin the Run finds the values again: in the file, and in what the agent was given
    place.kill_engine()
    place.boot()
    ask(place, provider)
    place.until(lambda: sum("answered" in line for line in said(place)) == 4, "the fourth answer is told")

    # a restart without a caller does not find the agent's own secret, and says which
    (place.files.home("bot") / "die").touch()
    entry = place.until(
        lambda: (found := place.entry("bot")).get("restart", {}).get("parked") and found, "it is parked"
    )
    assert "failed" == entry["state"]
    assert "secret:TOLD_KEY" in entry["restart"]["parked"]
    assert "kt secret set TOLD_KEY" in entry["restart"]["parked"]
    assert f"my last words: {stars}" in said(place)
    told = kt(place, "secret", "set", "TOLD_KEY", typed=TOLD + "\n")
    assert "bot does not run, and refers to it: `kt agent start bot`" in told

    everything = shown(place)
    for canary in (KEY, TOLD, token, PLAIN):
        assert canary not in everything, canary
    # the agent's own file holds what was rendered into it, which is what it is for
    assert ["agents/bot/agent.toml"] == holders(place.root, KEY, TOLD, PLAIN)
    assert [] == holders(place.root, token, but_not=LEDGER)


def run_token(place: House) -> str:
    """Return the token of the Run, from the environment of the agent, who was given it."""
    pid = place.entry("bot")["pid"]
    variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    [url] = [text for text in variables if text.startswith(b"OPENAI_BASE_URL=")]
    return url.decode().split("/")[3]


def shown(place: House) -> str:
    """Return all that every verb says of the agent, what `ps` shows, and the environment of our own processes."""
    verbs = (
        ("agent", "list", "--json"),
        ("agent", "show", "bot", "--json"),
        ("agent", "show", "bot"),
        ("agent", "usage", "bot", "--json"),
        ("agent", "calls", "bot", "--json"),
        ("agent", "logs", "bot", "--json"),
        ("agent", "config", "get", "bot", "--json"),
        ("agent", "config", "get", "bot"),
        ("agent", "memory", "show", "bot", "--json"),
        ("secret", "list", "--json"),
        ("engine", "status", "--json"),
    )
    told = [kt(place, *words, TOLD_KEY=TOLD) for words in verbs]
    told += [json.dumps(list(place.link.lines("/v1/events?after=0&follow=0", timeout_s=30)))]
    told.append(subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout)
    ours = [place.engine_pid(), int(json.loads(place.files.gateway.record.read_bytes())["pid"])]
    told += [Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace") for pid in ours]
    told.append(place.log())
    return "\n".join(told)


def test_a_start_that_fails_tells_its_last_words_without_the_secret(place: House) -> None:
    place.register("loud", "import os, sys; print('key', os.environ['KEY']); sys.exit(3)")
    place.set("loud", "agent.KEY", "secret:LOUD_KEY")

    refused = place.refusal("POST", "/v1/agents/loud/start", {"env": caller(LOUD_KEY="canary-loud-4411")})

    assert "its last lines" in str(refused)
    assert "key ****************" in str(refused)
    assert "canary-loud" not in str(refused)
    assert "canary-loud" not in place.log()
    assert [] == holders(place.root, "canary-loud-4411")


def test_a_changed_secret_reaches_the_run_whose_start_named_it_and_not_the_one_that_it_hides(
    place: House, provider: Any
) -> None:
    register(place, provider, "twice")
    kt(place, "secret", "set", "OTHER_KEY", typed="canary-other\n")
    client = Client(place.root)
    given = {"metering.upstream_api_key": "secret:OTHER_KEY"}
    client.start("twice", env=caller(TOLD_KEY=TOLD), settings=given)

    hidden = kt(place, "secret", "set", "PROVIDER_KEY", typed=KEY + "-2\n")
    before = ask(place, provider, "twice")
    meant = kt(place, "secret", "set", "OTHER_KEY", typed="canary-other-2\n")
    after = ask(place, provider, "twice")
    client.stop("twice", timeout_s=0)

    assert ("Bearer canary-other", "Bearer canary-other-2") == (before, after)
    assert "twice: its calls carry the new key" not in hidden
    assert "twice: its calls carry the new key" in meant


def test_a_restart_asks_for_the_secrets_that_its_start_named(place: House) -> None:
    place.register("kept", "import os, time; print(os.environ['TOK'], flush=True); time.sleep(600)")
    client = Client(place.root)
    variables = caller(ONLYENV="canary-only-env")
    client.start("kept", env=variables, settings={"agent.TOK": "secret:ONLYENV"})

    revealing = kt(
        place, "agent", "config", "get", "kept", "agent.TOK", "--reveal", ONLYENV="canary-only-env"
    )
    restarted = client.restart("kept", env=variables, timeout_s=0)
    client.stop("kept", timeout_s=0)
    fresh = place.ask("GET", "/v1/agents/kept/environment")
    again = place.ask("GET", "/v1/agents/kept/environment?for=restart")
    refused = place.refusal("GET", "/v1/agents/kept/environment?for=fun")

    assert "canary-only-env\n" == revealing
    assert "running" == restarted["state"]
    assert ([], ["ONLYENV"]) == (fresh["secrets"], again["secrets"])
    assert (2, True) == (refused.exit_code, "start, restart, run" in str(refused))


class Relay:
    """Stands between a client and the engine, and keeps what the client said."""

    def __init__(self, folder: Path, engine: Path) -> None:
        folder.mkdir(mode=0o700)
        self.heard = b""
        self._engine = engine
        self._server = unix_socket.bind(folder / "engine.sock")
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(connection,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as engine:
            unix_socket.connect(engine, self._engine)
            back = threading.Thread(target=self._copy, args=(engine, client), daemon=True)
            back.start()
            while data := client.recv(65536):
                self.heard += data
                engine.sendall(data)
            back.join(30)

    @staticmethod
    def _copy(source: socket.socket, target: socket.socket) -> None:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._server.close()


def test_only_variables_that_are_asked_for_cross_the_socket(place: House, tmp_path: Path) -> None:
    place.register("quiet", "import time; time.sleep(600)")
    place.set("quiet", "agent.X", "a ${secret:WANTED_CANARY} b")
    relay = Relay(tmp_path / "between", place.files.engine_socket)
    client = Client(tmp_path / "between")
    variables = caller(WANTED_CANARY="canary-wanted", LC_ALL="C", XDG_AUTH_TOKEN="canary-by-beginning")

    client.start("quiet", env=variables)
    client.restart("quiet", env=variables)
    client.config_set("quiet", "model", "small")
    client.stop("quiet", timeout_s=0)
    relay.close()

    assert relay.heard.count(b"canary-wanted") == 2
    assert b'"LC_ALL": "C"' in relay.heard
    for canary in (PLAIN, "UNRELATED_CANARY", "canary-by-beginning"):
        assert canary.encode() not in relay.heard


def test_a_revealed_setting_needs_the_secrets_it_refers_to_and_no_other_variable(
    place: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.register("shown", "import time; time.sleep(600)")
    place.set("shown", "agent.X", "a ${secret:WANTED_CANARY} b")
    monkeypatch.setenv("WANTED_CANARY", "canary-wanted")
    monkeypatch.setenv("UNRELATED_CANARY", PLAIN)
    relay = Relay(tmp_path / "between", place.files.engine_socket)

    masked = Client(tmp_path / "between").config_get("shown", "agent.X")
    revealed = Client(tmp_path / "between").config_get("shown", "agent.X", reveal=True)
    relay.close()

    assert "a secret:**** b" == masked["entries"][0]["value"]
    assert "a canary-wanted b" == revealed["entries"][0]["value"]
    assert PLAIN.encode() not in relay.heard
    assert b'"PATH"' not in relay.heard


def test_a_secret_on_a_command_line_is_told_at_the_registration_and_where_it_is_set(place: House) -> None:
    manifest = place.root / "flag.toml"
    manifest.write_text(
        'contract_version = "1.0.0"\n[adapter]\nkind = "flagged"\n[lifecycle.start]\nexec = "true"\n'
        '[capabilities.interaction]\nlinux = "guaranteed"\nmacos = "guaranteed"\n'
        '[metering]\nsource = "engine-observed"\n[config."metering.base_url"]\nflag = "--url"\n'
        '[config.model]\nflag = "--model"\n'
    )

    told = Client(place.root).register("flagged", manifest=manifest)

    whole, inside, plain = (
        Client(place.root).config_set("flagged", "model", value)["notices"]
        for value in ("secret:K", "x ${secret:K}", "small")
    )

    assert any("metering.base_url" in notice and "process list" in notice for notice in told["notices"])
    for notices in (whole, inside):
        assert any("model carries a secret" in notice and "process list" in notice for notice in notices)
    assert not any("process list" in notice for notice in plain)
