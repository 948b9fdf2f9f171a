from typing import Any

SLEEPS = "import time\ntime.sleep(600)"


def test_every_answer_says_its_version(house: Any) -> None:
    answers = {
        "register": house.register("bot", SLEEPS),
        "set": house.set("bot", "agent.NAME", "x"),
        "get": house.ask("GET", "/v1/agents/bot/config"),
        "unset": house.ask("DELETE", "/v1/agents/bot/config?key=agent.NAME"),
        "start": house.start("bot"),
        "show": house.ask("GET", "/v1/agents/bot"),
        "usage": house.ask("GET", "/v1/agents/bot/usage"),
        "calls": house.ask("GET", "/v1/agents/bot/exchanges"),
        "list": house.ask("GET", "/v1/agents"),
        "used": house.ask("GET", "/v1/usage"),
        "stop": house.stop("bot"),
        "remove": house.ask("DELETE", "/v1/agents/bot?home=delete"),
        "removed": house.ask("GET", "/v1/usage?removed=1"),
        "engine": house.ask("GET", "/v1/engine"),
    }

    versions = {word: answer.get("schema_version") for word, answer in answers.items()}

    assert {2} == {versions[word] for word in ("show", "usage", "list", "used", "removed")}
    assert {1} == {version for word, version in versions.items() if version != 2}
    assert "bot" == answers["removed"]["removed"][0]["name"]


def test_what_an_agent_says_badly_makes_its_sum_a_lower_bound(house: Any) -> None:
    said = 'KTESIO_USAGE {"sequence":0,"input_tokens":7,"output_tokens":1}'
    house.register("bot", f"print('''{said}''')\nprint('KTESIO_USAGE not json', flush=True)\n{SLEEPS}")
    house.start("bot")

    usage = house.until(
        lambda: (u := house.entry("bot")["usage"])["cumulative_input_tokens"] and u, "its words are counted"
    )

    assert ("partial", "partial") == (usage["usage_known"], usage["current_run_usage_known"])
    [listed] = house.ask("GET", "/v1/agents")["instances"]
    assert "partial" == listed["usage"]["usage_known"]
