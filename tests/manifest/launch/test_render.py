import json
from dataclasses import replace
from pathlib import Path

import pytest

from kt_manifest.contract import kinds, manifest
from kt_manifest.contract.snapshot import Adapter, EnvTarget, FileTarget, FlagTarget, Rule, Template
from kt_manifest.launch import render
from kt_manifest.launch.render import RenderedFile, RunFacts

GOLDENS = Path(__file__).parent / "goldens"
LOOPBACK = "127.0.0.1,localhost,::1"
KEY = "sk-canary-9d2e"


def _run(**facts: object) -> RunFacts:
    return RunFacts(
        **({"home": Path("/home/x"), "base_environment": {}, "instance_id": "i", "run_id": "r"} | facts)
    )  # type: ignore[arg-type]


def _adapter(*rules: Rule, env: dict[str, str] | None = None) -> Adapter:
    plain = kinds.command(["prog", "--serve"], interactive=False, observe=False)
    return replace(plain, start=Template(exec="prog", args=("--serve",), env=env or {}), mapping=rules)


@pytest.mark.parametrize("case", sorted(path.stem for path in GOLDENS.glob("*.json")))
def test_a_launch_is_the_one_in_the_golden(case: str) -> None:
    golden = json.loads((GOLDENS / f"{case}.json").read_text(encoding="utf-8"))
    adapter = manifest.parse(golden["manifest"], origin=case)
    facts = {
        name: frozenset(value) if isinstance(value, list) else value for name, value in golden["run"].items()
    }

    launch = render.render(adapter, golden["settings"], _run(**facts))

    assert golden["launch"] == {
        "argv": list(launch.argv),
        "env": launch.env,
        "files": {file.path: file.content for file in launch.files},
        "notices": list(launch.notices),
    }


def test_there_are_goldens() -> None:
    assert len(list(GOLDENS.glob("*.json"))) >= 3


def test_a_kind_without_a_program_launches_nothing() -> None:
    with pytest.raises(render.NothingToLaunch, match="mock, which launches nothing") as caught:
        render.render(kinds.builtin("mock"), {}, _run())

    assert caught.value.exit_code == 1


def test_the_command_kind_observed_is_led_to_its_listener_with_a_placeholder() -> None:
    adapter = kinds.command(["prog"], interactive=False, observe=True)
    run = _run(
        metering_base_url="http://127.0.0.1:9/t/v1",
        placeholder_key="t",
        base_environment={"OPENAI_API_KEY": KEY},
    )

    launch = render.render(adapter, {"metering.upstream_api_key": KEY}, run)

    assert launch.env == {
        "OPENAI_BASE_URL": "http://127.0.0.1:9/t/v1",
        "OPENAI_API_BASE": "http://127.0.0.1:9/t/v1",
        "OPENAI_API_KEY": "t",
        "NO_PROXY": LOOPBACK,
        "no_proxy": LOOPBACK,
    }


def test_without_a_key_of_ours_the_agents_own_passes() -> None:
    adapter = kinds.command(["prog"], interactive=False, observe=True)
    run = _run(metering_base_url="http://127.0.0.1:9/t/v1", base_environment={"OPENAI_API_KEY": KEY})

    assert render.render(adapter, {}, run).env["OPENAI_API_KEY"] == KEY


@pytest.mark.parametrize("stored", [KEY, "secret:MY_KEY"])
def test_the_providers_key_never_reaches_the_agent_when_the_gateway_puts_it_in(stored: str) -> None:
    adapter = _adapter(
        Rule("metering.upstream_api_key", EnvTarget("A_KEY")),
        Rule("metering.upstream_api_key", FlagTarget("--key")),
        Rule("metering.upstream_api_key", FileTarget("a.toml", "key")),
    )
    run = _run(
        base_environment={"MY_KEY": KEY, "PATH": "/bin"},
        placeholder_key="placeholder",
        secret_keys=frozenset({"metering.upstream_api_key"}),
    )

    launch = render.render(adapter, {"metering.upstream_api_key": stored}, run)

    told = (launch.argv, launch.env, [file.content for file in launch.files], launch.notices)
    assert KEY not in repr(told)
    assert (launch.env["A_KEY"], launch.env["PATH"]) == ("placeholder", "/bin")
    assert launch.argv == ("prog", "--serve", "--key", "placeholder")
    assert any("MY_KEY is withheld" in notice for notice in launch.notices)


def test_without_a_placeholder_a_key_in_the_settings_is_delivered_nowhere() -> None:
    launch = render.render(
        _adapter(Rule("metering.upstream_api_key", EnvTarget("A_KEY"))),
        {"metering.upstream_api_key": KEY},
        _run(),
    )

    assert KEY not in repr((launch.argv, launch.env, launch.files))


def test_later_wins_from_the_caller_to_the_engine() -> None:
    rules = (Rule("model", EnvTarget("A")), Rule("metering.base_url", EnvTarget("D")))
    adapter = _adapter(*rules, env={"A": "start", "B": "start", "C": "start"})
    base = dict.fromkeys("ABCDE", "base")
    values = {"model": "mapped", "agent.B": "passed", "agent.D": "passed"}

    launch = render.render(adapter, values, _run(base_environment=base, metering_base_url="engine"))

    assert {name: launch.env[name] for name in "ABCDE"} == {
        "A": "mapped",
        "B": "passed",
        "C": "start",
        "D": "engine",
        "E": "base",
    }
    assert launch.notices == (
        "agent.D is not delivered: metering.base_url sets D",
        "D of the caller's environment is replaced: metering.base_url sets it",
        "A of the caller's environment is replaced: model sets it",
    )


def test_a_mapped_setting_wins_over_pass_through_and_says_so() -> None:
    launch = render.render(_adapter(Rule("model", EnvTarget("M"))), {"model": "a", "agent.M": "b"}, _run())

    assert launch.env["M"] == "a"
    assert launch.notices == ("agent.M is not delivered: model sets M",)


def test_a_variable_that_already_had_the_value_is_worth_no_notice() -> None:
    launch = render.render(
        _adapter(Rule("model", EnvTarget("M"))), {"model": "a"}, _run(base_environment={"M": "a"})
    )

    assert launch.notices == ()


def test_a_hand_written_reserved_key_leads_nowhere() -> None:
    adapter = _adapter(Rule("metering.base_url", EnvTarget("U")), Rule("memory.dir", EnvTarget("M")))
    values = {"metering.base_url": "http://evil", "memory.dir": "/elsewhere"}

    assert set(render.render(adapter, values, _run()).env) == {"NO_PROXY", "no_proxy"}
    with_facts = render.render(
        adapter, values, _run(metering_base_url="http://127.0.0.1:1", memory_dir=Path("/m"))
    )
    assert (with_facts.env["U"], with_facts.env["M"]) == ("http://127.0.0.1:1", "/m")


def test_the_origin_is_delivered_where_it_is_mapped() -> None:
    launch = render.render(
        _adapter(Rule("metering.origin", EnvTarget("O"))), {}, _run(metering_origin="http://127.0.0.1:1/t")
    )

    assert launch.env["O"] == "http://127.0.0.1:1/t"


def test_a_key_mapped_nowhere_is_delivered_nowhere_without_a_word() -> None:
    launch = render.render(
        _adapter(), {"model": "m", "acp.args": ["x"]}, _run(metering_base_url="http://127.0.0.1:1")
    )

    assert launch.argv == ("prog", "--serve")
    assert launch.env == {"NO_PROXY": LOOPBACK, "no_proxy": LOOPBACK}
    assert (launch.files, launch.notices) == ((), ())


def test_a_flag_is_two_tokens_and_a_list_repeats_it() -> None:
    adapter = _adapter(Rule("model", FlagTarget("--model")), Rule("acp.args", FlagTarget("-a")))

    launch = render.render(adapter, {"acp.args": ["x", "-y z"], "model": "-m"}, _run())

    assert launch.argv == ("prog", "--serve", "--model", "-m", "-a", "x", "-a", "-y z")


def test_a_list_in_a_variable_is_quoted_as_a_shell_would_read_it() -> None:
    launch = render.render(_adapter(Rule("acp.args", EnvTarget("A"))), {"acp.args": ["x", "y z"]}, _run())

    assert launch.env["A"] == "x 'y z'"


def test_a_secret_on_the_command_line_is_told_by_its_key_only() -> None:
    adapter = _adapter(Rule("model", FlagTarget("--model")), Rule("acp.command", EnvTarget("C")))

    launch = render.render(
        adapter, {"model": KEY, "acp.command": KEY}, _run(secret_keys=frozenset({"model", "acp.command"}))
    )

    assert launch.notices == (
        "model carries a secret and is delivered as --model: other users can see it in the process list",
    )
    assert KEY not in repr(launch)


def test_a_files_keys_are_merged_and_one_without_values_is_to_be_removed() -> None:
    adapter = _adapter(
        Rule("model", FileTarget("c/a.toml", "llm.model")),
        Rule("metering.base_url", FileTarget("c/a.toml", "llm.url")),
        Rule("acp.command", FileTarget("b.toml", "x")),
    )

    launch = render.render(adapter, {"model": "5"}, _run(metering_base_url="http://127.0.0.1:1"))

    assert launch.files == (
        RenderedFile(
            "c/a.toml",
            "# Rendered by kt for instance i, run r; rewritten at each start.\n"
            '[llm]\nmodel = "5"\nurl = "http://127.0.0.1:1"\n',
        ),
        RenderedFile("b.toml", ""),
    )


@pytest.mark.parametrize(
    ("base", "upper", "lower"),
    [
        ({}, LOOPBACK, LOOPBACK),
        ({"NO_PROXY": "corp"}, f"corp,{LOOPBACK}", f"corp,{LOOPBACK}"),
        ({"no_proxy": "corp"}, f"corp,{LOOPBACK}", f"corp,{LOOPBACK}"),
        ({"NO_PROXY": "a", "no_proxy": " b , ,localhost"}, f"a,{LOOPBACK}", "b,localhost,127.0.0.1,::1"),
        ({"NO_PROXY": "*"}, "*", "*"),
        ({"NO_PROXY": ""}, LOOPBACK, LOOPBACK),
        ({"NO_PROXY": LOOPBACK}, LOOPBACK, LOOPBACK),
    ],
)
def test_loopback_is_always_exempt_from_proxies(base: dict[str, str], upper: str, lower: str) -> None:
    env = render.render(_adapter(), {}, _run(base_environment=base)).env

    assert (upper, lower) == (env["NO_PROXY"], env["no_proxy"])


def test_no_setting_can_take_loopback_away() -> None:
    env = render.render(_adapter(), {"agent.NO_PROXY": "corp", "agent.no_proxy": ""}, _run()).env

    assert (f"corp,{LOOPBACK}", f"corp,{LOOPBACK}") == (env["NO_PROXY"], env["no_proxy"])


def test_rendering_is_pure() -> None:
    adapter = kinds.command(["prog"], interactive=False, observe=True)
    base, values = {"A": "b", "K": KEY}, {"model": "m", "metering.upstream_api_key": KEY}
    run = _run(base_environment=base, placeholder_key="t", metering_base_url="http://127.0.0.1:1")

    assert render.render(adapter, values, run) == render.render(adapter, values, run)
    assert base == {"A": "b", "K": KEY}
    assert values == {"model": "m", "metering.upstream_api_key": KEY}
    assert KEY not in repr(run)


def test_everything_that_a_start_needs_is_reached_through_render() -> None:
    assert {
        "find_executable",
        "write_files",
        "RenderedFile",
        "RenderRefused",
        "ExecutableMissing",
        "NotExecutable",
    } <= set(dir(render))


def test_a_token_on_the_command_line_is_told_as_well() -> None:
    adapter = _adapter(Rule("metering.base_url", FlagTarget("--url")))

    launch = render.render(adapter, {}, _run(metering_base_url="http://127.0.0.1:1/tok/v1"))

    assert launch.argv == ("prog", "--serve", "--url", "http://127.0.0.1:1/tok/v1")
    assert launch.notices == (
        "metering.base_url carries a secret and is delivered as --url: other users can see it in the process list",
    )


def test_whoever_sets_a_secret_can_be_warned_before_any_start() -> None:
    adapter = _adapter(
        Rule("model", EnvTarget("M")),
        Rule("model", FlagTarget("--model")),
        Rule("acp.command", EnvTarget("C")),
        Rule("metering.upstream_api_key", FlagTarget("--key")),
    )

    assert "delivered as --model" in str(render.exposure(adapter, "model"))
    assert [
        render.exposure(adapter, key) for key in ("acp.command", "acp.args", "metering.upstream_api_key")
    ] == [None] * 3


def test_an_address_with_a_token_on_a_command_line_is_told_before_anything_is_started() -> None:
    adapter = _adapter(
        Rule("metering.base_url", FlagTarget("--url")),
        Rule("metering.origin", EnvTarget("ORIGIN")),
        Rule("metering.upstream_api_key", FlagTarget("--key")),
        Rule("model", FlagTarget("--model")),
    )

    told = render.token_exposures(adapter)

    assert ["metering.base_url", "metering.upstream_api_key"] == [line.split()[0] for line in told]
    assert all("other users can see it in the process list" in line for line in told)
