import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from typing import Any

import pytest
from tests.provider import Seen, all_answered

KILLS = 20 if "KT_CHAOS" in os.environ else 4

ASKS = """
import http.client, json, os, sys, time
from urllib.parse import urlsplit

base = urlsplit(os.environ["OPENAI_BASE_URL"])
print("key", os.environ.get("OPENAI_API_KEY"), flush=True)
def ask():
    c = http.client.HTTPConnection(base.netloc, timeout=30)
    body = json.dumps({"model": "demo/answer", "messages": [{"role": "user", "content": "hi"}]})
    key = "Bearer " + os.environ.get("OPENAI_API_KEY", "own")
    c.request("POST", base.path + "/chat/completions", body,
              {"content-type": "application/json", "authorization": key})
    return c.getresponse()
calls = int(sys.argv[1])
while calls:
    if not os.path.exists("go"):
        time.sleep(0.02)
        continue
    try:
        answer = ask()
        print("status", answer.status, answer.read()[:80], flush=True)
        calls -= 1
    except OSError as error:
        print("again", error, flush=True)
        time.sleep(0.05)
    if os.path.exists("one"):
        os.unlink("go"); os.unlink("one")
print("asked all", flush=True)
time.sleep(600)
"""


def go(house: Any, name: str) -> None:
    (house.files.home(name) / "go").write_text("")


def calls(house: Any, name: str) -> list[Any]:
    return list(house.ask_patiently("GET", f"/v1/agents/{name}/exchanges?limit=1000")["exchanges"])


def observed(house: Any, name: str, count: str, url: str) -> None:
    house.register(name, ASKS, count, observe=True)
    house.set(name, "metering.upstream_base_url", f"{url}/v1")


def asked_all(house: Any, name: str) -> bool:
    return any(line["text"] == "asked all" for line in house.said(name))


def test_an_observed_agent_without_a_provider_is_refused_by_the_keys_name(house: Any) -> None:
    house.register("bot", ASKS, "1", observe=True)

    refused = house.refusal("POST", "/v1/agents/bot/start", {"env": {}})

    assert 1 == refused.exit_code
    assert "metering.upstream_base_url" in str(refused)
    assert "registered" == house.entry("bot")["state"]


def test_every_call_of_the_provider_is_in_the_ledger(house: Any, provider: Seen) -> None:
    observed(house, "bot", "5", provider.url)
    house.start("bot")
    go(house, "bot")

    house.until(lambda: asked_all(house, "bot"), "all calls are answered")

    rows = calls(house, "bot")
    log = all_answered(provider)
    assert 5 == len(rows) == len(log)
    assert {"exact"} == {row["completeness"] for row in rows}
    usage = house.entry("bot")["usage"]
    assert sum(call.input_tokens or 0 for call in log) == usage["cumulative_input_tokens"]
    assert sum(call.output_tokens or 0 for call in log) == usage["cumulative_output_tokens"]
    assert ("all", 0) == (usage["usage_known"], usage["unmeasured_calls"])


def test_a_stopped_agents_listener_refuses_and_keeps_its_port(house: Any, provider: Seen) -> None:
    observed(house, "bot", "1", provider.url)
    port = house.entry("bot")["metering"]["port"]

    assert 403 == status_at(port)
    house.start("bot")
    assert port == house.entry("bot")["metering"]["port"]


def test_the_listener_of_a_stopped_agent_comes_back_with_the_next_gateway_and_still_says_no(
    house: Any, provider: Seen
) -> None:
    observed(house, "bot", "1", provider.url)
    house.start("bot")
    house.stop("bot")
    port = house.entry("bot")["metering"]["port"]
    assert 403 == status_at(port)
    first = house.ask("GET", "/v1/engine")["gateway"]

    house.kill(first["pid"])
    house.until(lambda: status_at(port) == 403, "a refusal at the same port")

    second = house.until(lambda: house.ask("GET", "/v1/engine")["gateway"], "the next gateway is connected")
    assert first["pid"] != second["pid"]
    assert port == house.entry("bot")["metering"]["port"]


def status_at(port: int) -> int | None:
    """Call a listener as a process that was left behind would; None where nobody listens or answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("POST", "/a-token-of-before/v1/chat/completions", b"{}")
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def test_a_killed_gateway_comes_back_with_the_same_port_for_a_running_agent(
    house: Any, provider: Seen
) -> None:
    observed(house, "bot", "40", provider.url)
    house.start("bot")
    go(house, "bot")
    house.until(lambda: len(calls(house, "bot")) > 5, "calls were made")
    first = house.ask("GET", "/v1/engine")["gateway"]

    house.kill(first["pid"])
    house.until(lambda: asked_all(house, "bot"), "all calls are answered")

    second = house.until(lambda: house.ask("GET", "/v1/engine")["gateway"], "the next gateway is connected")
    assert first["incarnation"] != second["incarnation"]

    def ended() -> list[Any] | None:
        rows = calls(house, "bot")
        over = all(row["state"] == "ended" for row in rows)
        return rows if over and len(rows) >= len(provider.calls()) else None

    sent = house.until(ended, "every call has ended")
    known = sum(row["completeness"] == "exact" for row in sent)
    assert len(provider.calls()) <= len(sent)
    assert 40 <= known <= len(provider.calls())


@pytest.mark.long
@pytest.mark.chaos
def test_engine_and_gateway_killed_together_come_back_without_a_command(house: Any, provider: Seen) -> None:
    observed(house, "bot", "30", provider.url)
    started = house.start("bot")
    go(house, "bot")
    house.until(lambda: len(calls(house, "bot")) > 5, "calls were made")
    facts = house.ask("GET", "/v1/engine")

    os.kill(facts["gateway"]["pid"], signal.SIGKILL)
    house.kill(facts["pid"])

    house.until(lambda: asked_all(house, "bot"), "all calls are answered")
    assert started["run_id"] == house.entry("bot")["run_id"]
    house.until(lambda: len(calls(house, "bot")) >= len(provider.calls()), "every call has a row")


@pytest.mark.long
@pytest.mark.chaos
def test_killed_engines_lose_no_call(house: Any, provider: Seen) -> None:
    observed(house, "bot", "200", provider.url)
    house.start("bot")
    go(house, "bot")

    for _ in range(KILLS):
        house.kill_engine()
    house.until(lambda: asked_all(house, "bot"), "all calls are answered")

    log = all_answered(provider)
    assert 200 == len(log) == len(calls(house, "bot"))
    usage = house.entry("bot")["usage"]
    assert sum(call.input_tokens or 0 for call in log) == usage["cumulative_input_tokens"]


def test_the_agent_gets_a_placeholder_and_never_the_key(house: Any, provider: Seen) -> None:
    observed(house, "bot", "1", provider.url)
    house.set("bot", "metering.upstream_api_key", "secret:PROVIDER_KEY", PROVIDER_KEY="sk-very-secret")

    house.start("bot", PROVIDER_KEY="sk-very-secret")
    go(house, "bot")
    house.until(lambda: asked_all(house, "bot"), "the call is answered")

    texts = " ".join(line["text"] for line in house.said("bot"))
    assert "status 200" in texts
    assert "sk-very-secret" not in texts
    holders = [
        path for path in house.root.rglob("*") if path.is_file() and b"sk-very-secret" in path.read_bytes()
    ]
    assert [] == holders


def test_a_key_that_nobody_remembers_closes_the_listener_and_says_so(house: Any, provider: Seen) -> None:
    observed(house, "bot", "1", provider.url)
    house.set("bot", "metering.upstream_api_key", "secret:PROVIDER_KEY", PROVIDER_KEY="sk-very-secret")
    house.start("bot", PROVIDER_KEY="sk-very-secret")
    facts = house.ask("GET", "/v1/engine")
    os.kill(facts["gateway"]["pid"], signal.SIGKILL)
    house.kill(facts["pid"])
    house.until(lambda: house.ask_patiently("GET", "/v1/engine")["gateway"], "a gateway is back")

    go(house, "bot")
    house.until(lambda: asked_all(house, "bot"), "the call is answered")

    assert "status 403" in " ".join(line["text"] for line in house.said("bot"))
    assert [] == provider.calls()
    assert any("provider's key" in remark for remark in house.entry("bot")["remarks"])


def test_a_key_survives_the_engine_as_long_as_the_gateway_lives(house: Any, provider: Seen) -> None:
    observed(house, "bot", "1", provider.url)
    house.set("bot", "metering.upstream_api_key", "secret:PROVIDER_KEY", PROVIDER_KEY="sk-very-secret")
    house.start("bot", PROVIDER_KEY="sk-very-secret")
    house.kill_engine()
    house.until(lambda: house.ask_patiently("GET", "/v1/engine")["gateway"], "the gateway is adopted")

    go(house, "bot")
    house.until(lambda: asked_all(house, "bot"), "the call is answered")

    assert "status 200" in " ".join(line["text"] for line in house.said("bot"))


def test_a_port_that_a_stranger_took_is_replaced_with_a_notice(house: Any, provider: Seen) -> None:
    observed(house, "bot", "1", provider.url)
    port = house.entry("bot")["metering"]["port"]
    assert 0 == house.stop_everything()
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind(("127.0.0.1", port))
        stranger.listen()
        house.boot()

        started = house.start("bot")

    assert any(str(port) in notice for notice in started["notices"])
    assert port != house.entry("bot")["metering"]["port"]


@pytest.mark.long
def test_a_gateway_that_somebody_else_started_is_adopted_and_no_other_one_is_started(
    empty_house: Any, provider: Seen
) -> None:
    empty_house.root.mkdir(mode=0o700)
    gateway = subprocess.Popen(
        [sys.executable, "-m", "kt_addons", "--state-dir", str(empty_house.root)], start_new_session=True
    )
    empty_house.children.append(gateway)
    empty_house.variables = {"KT_GATEWAY": "external"}
    empty_house.boot()

    found = empty_house.until(lambda: empty_house.ask("GET", "/v1/engine")["gateway"], "it is adopted")
    observed(empty_house, "bot", "1", provider.url)
    empty_house.start("bot")
    go(empty_house, "bot")
    empty_house.until(lambda: asked_all(empty_house, "bot"), "the call is answered")

    assert gateway.pid == found["pid"]
    assert 1 == len(calls(empty_house, "bot"))


def test_an_unmapped_observed_agent_says_that_its_traffic_will_not_be_seen(house: Any) -> None:
    from kt_manifest.contract import kinds

    facts = json.loads(kinds.command([sys.executable], interactive=False, observe=True).to_json())
    facts["mapping"] = []
    house.ask("POST", "/v1/agents", {"name": "blind", "adapter": json.dumps(facts)})

    entry = house.entry("blind")

    assert not entry["metering"]["mapped"]
    assert "will not be seen" in entry["remarks"][0]
