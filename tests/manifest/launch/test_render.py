import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kt_manifest.contract import kinds, manifest
from kt_manifest.contract.declared_posture import ConfigSwitch, Isolation, Posture, Updates
from kt_manifest.contract.snapshot import (
    TYPES,
    Adapter,
    EnvTarget,
    FileTarget,
    FlagTarget,
    Rule,
    Shape,
    Template,
)
from kt_manifest.launch import placeholders, render, run_facts
from kt_manifest.launch.delivery import ReferenceRefused, ValueMissing, ValueUnfit
from kt_manifest.launch.provenance import Source
from kt_manifest.launch.render import PlaceholderUnset, RenderedFile, RunFacts

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
        "A of the adapter's environment is replaced: model sets it",
        "A of the caller's environment is replaced: model sets it",
        "agent.D is not delivered: metering.base_url sets D",
        "D of the caller's environment is replaced: metering.base_url sets it",
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

    def told(key: str, value: Any) -> tuple[str, ...]:
        return render.exposures(adapter, render.secret_settings({key: value}))

    for value in ("secret:K", "x ${secret:K}", ["--key", "${secret:K}"]):
        [warning] = told("model", value)
        assert "delivered as --model" in warning
    assert () == told("model", "plain")
    assert [()] * 3 == [
        told(key, "secret:K") for key in ("acp.command", "acp.args", "metering.upstream_api_key")
    ]


# -- placeholders, isolation, updates ------------------------------------------------------------------------------
def _replacing(*rules: Rule, syntax: str = "{env:VAR}", **parts: object) -> Adapter:
    plain = _adapter(*rules)
    return replace(plain, posture=Posture(substitution=(syntax,), **parts))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rules", "values", "label"),
    [
        ((Rule("model", EnvTarget("M")),), {"model": "{env:GONE}"}, "model"),
        ((Rule("model", FlagTarget("--m")),), {"model": "{env:GONE}"}, "model"),
        ((Rule("model", FileTarget("a.toml", "k")),), {"model": "{env:GONE}"}, "model"),
        ((Rule("model", FileTarget("a.toml", "k")),), {"model": '{"a": "\\u007benv:GONE}"}'}, "model"),
        ((Rule("acp.args", FlagTarget("-a")),), {"acp.args": ["x", "{env:GONE}"]}, "acp.args"),
        ((Rule("acp.args", FileTarget("a.toml", "k")),), {"acp.args": ["x", "{env:GONE}"]}, "acp.args"),
        ((), {"agent.CONTENT": '{"a": {"b": ["{env:GONE}"]}}'}, "agent.CONTENT"),
        (
            (Rule("model", FileTarget("a.json", "k"), Shape(format="json", merge=True)),),
            {"model": "{env:GONE}"},
            "model",
        ),
        (
            (
                Rule(
                    "model",
                    FileTarget("a.json", ""),
                    Shape(format="json", merge=True, template='{"{env:GONE}": "${model}"}'),
                ),
            ),
            {"model": "m"},
            "a.json",
        ),
        (
            (
                Rule(
                    "model",
                    FileTarget("a.yaml", ""),
                    Shape(format="yaml", template='x: "\\x7benv:GONE}"\ny: ${model}\n'),
                ),
            ),
            {"model": "m"},
            "a.yaml",
        ),
        (
            (
                Rule(
                    "model",
                    EnvTarget("M"),
                    Shape(format="json", template='{"a": "{env:GONE}", "b": "${model}"}'),
                ),
            ),
            {"model": "m"},
            "model",
        ),
        ((), {"agent.CONTENT": json.dumps({"a": json.dumps({"b": "\u007benv:GONE}"})})}, "agent.CONTENT"),
    ],
)
def test_a_placeholder_without_a_value_renders_nothing_whatever_its_target(
    rules: tuple[Rule, ...], values: dict[str, str], label: str
) -> None:
    adapter = _replacing(*rules)

    with pytest.raises(PlaceholderUnset) as caught:
        render.render(adapter, values, _run())

    assert 1 == caught.value.exit_code
    assert f"{label} names GONE, which is not set" in str(caught.value)
    assert render.render(adapter, values | {"agent.GONE": "x"}, _run()).env["GONE"] == "x"
    with pytest.raises(PlaceholderUnset, match="which is empty"):
        render.render(adapter, values | {"agent.GONE": ""}, _run())


def test_what_the_adapter_itself_writes_is_scanned_as_well() -> None:
    start = Template(exec="{env:A}", args=("{env:B}",), env={"CONTENT": "{env:C}", "EMPTY": ""})
    updates = Updates(
        env={"U": "{env:D}"}, args=("{env:E}",), config=ConfigSwitch(env="J", key="k", value="{env:EMPTY}")
    )
    adapter = replace(_replacing(updates=updates), start=start)

    launch = render.preview(adapter, {}, _run())

    assert {
        ("[lifecycle.start] args", "B"),
        ("[lifecycle.start] env, CONTENT", "C"),
        ("[kt.updates], U", "D"),
        ("[kt.updates] args", "E"),
        ("[kt.updates], J", "EMPTY"),
    } == {(one.label, one.name) for one in launch.unset}
    assert ("{env:A}", "{env:B}", "{env:E}") == launch.argv


def test_what_does_not_reach_the_agent_is_not_scanned() -> None:
    adapter = _replacing(Rule("model", EnvTarget("M")))
    values = {"model": "m", "agent.M": "{env:GONE}", "acp.command": "{env:GONE}"}

    launch = render.render(adapter, values, _run(base_environment={"PATH": "/x/{env:GONE}"}))

    assert "m" == launch.env["M"]


def test_a_variable_that_somebody_asked_to_inherit_is_scanned() -> None:
    with pytest.raises(PlaceholderUnset, match=r"env\.inherit, CONTENT names GONE"):
        render.render(_replacing(), {}, _run(base_environment={"CONTENT": "{env:GONE}"}))


def test_what_the_engine_delivers_counts_as_set() -> None:
    adapter = _replacing(
        Rule("metering.base_url", EnvTarget("URL")), Rule("metering.upstream_api_key", EnvTarget("KEY"))
    )
    values = {"agent.CONTENT": "{env:URL} {env:KEY} {env:KT_RUN} {env:NO_PROXY}"}
    run = _run(metering_base_url="http://127.0.0.1:1", placeholder_key="t", instance_name="bot")

    assert () == render.render(adapter, values, run).unset
    with pytest.raises(PlaceholderUnset, match=r"URL, which is not set.*KEY, which is not set"):
        render.render(adapter, values, _run(instance_name="bot"))


def test_a_withheld_key_is_not_set_for_the_agent() -> None:
    run = _run(base_environment={"MY_KEY": KEY}, placeholder_key="t")

    with pytest.raises(PlaceholderUnset, match="MY_KEY, which is not set"):
        render.render(_replacing(), {"metering.upstream_api_key": KEY, "agent.C": "{env:MY_KEY}"}, run)


def test_without_the_declaration_nothing_is_scanned() -> None:
    assert render.render(_adapter(), {"agent.C": "{env:GONE} $GONE"}, _run()).env["C"] == "{env:GONE} $GONE"


def test_a_secret_with_a_placeholder_is_refused_and_not_told() -> None:
    run = _run(secret_keys=frozenset({"agent.K"}))

    with pytest.raises(PlaceholderUnset) as caught:
        render.render(_replacing(syntax="$VAR"), {"agent.K": "pa$$canary"}, run)

    assert "agent.K names a variable" in str(caught.value)
    assert "canary" not in str(caught.value)


def test_isolation_is_delivered_with_its_folders_and_the_switch_before_what_settings_add() -> None:
    adapter = _replacing(
        Rule("model", FlagTarget("--model")),
        isolation=Isolation(env={"ROOT": "a/b"}),
        updates=Updates(args=("-c", "update=false")),
    )

    launch = render.render(adapter, {"model": "m"}, _run())

    assert ("prog", "--serve", "-c", "update=false", "--model", "m") == launch.argv
    assert [
        (Source.ADAPTER, ""),
        (Source.ADAPTER, ""),
        (Source.UPDATES, ""),
        (Source.UPDATES, ""),
        (Source.SETTING, "model"),
        (Source.SETTING, "model"),
    ] == [(entry.source, entry.key) for entry in launch.arguments]
    assert (("a/b",), "/home/x/a/b") == (launch.folders, launch.env["ROOT"])


EXPOSED = "{} carries a secret and is delivered as --flag: other users can see it in the process list"


@pytest.mark.parametrize(
    ("key", "at_register", "at_set", "at_start"),
    [
        # key, and whether its flag is told when the agent is registered, the secret set, the agent started
        ("model", False, True, True),
        ("acp.command", False, True, True),
        ("metering.base_url", True, False, True),
        ("metering.origin", True, False, True),
        ("metering.upstream_api_key", True, False, True),
        ("memory.dir", False, False, False),
    ],
)
def test_a_secret_in_an_argument_is_told_wherever_it_is_known(
    key: str, at_register: bool, at_set: bool, at_start: bool
) -> None:
    adapter = _adapter(Rule(key, FlagTarget("--flag")), Rule("acp.args", EnvTarget("A")))
    run = _run(
        secret_keys=frozenset({"model", "acp.command", "metering.upstream_api_key"}),
        metering_base_url="http://127.0.0.1:1/t/v1",
        metering_origin="http://127.0.0.1:1/t",
        placeholder_key="t",
        memory_dir=Path("/m"),
    )
    values = {"model": KEY, "acp.command": KEY, "metering.upstream_api_key": KEY}
    told = EXPOSED.format(key)

    set_to = render.secret_settings({key: "a ${secret:K}"})

    assert ((told,) if at_register else ()) == render.exposures(adapter, run_facts.CARRY_A_TOKEN)
    assert ((told,) if at_set else ()) == render.exposures(adapter, set_to)
    assert at_start == (told in render.render(adapter, values, run).notices)


NAMES = st.sampled_from(["A", "B", "MODEL", "KEY", "_x"])
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(["x", " ", '"', "\\", "{", "}", "$", "%", "\\u007b", "\\u0024"]),
        NAMES.map("{{env:{}}}".format),
        NAMES.map("${{{}}}".format),
        NAMES.map("${}".format),
        NAMES.map("%{}%".format),
    ),
    max_size=4,
).map("".join)


def _hidden(text: str) -> str:
    """Write the beginnings of placeholders in JSON as escapes, which a parser undoes."""
    for plain, escape in (("{env:", "\\u007benv:"), ("$", "\\u0024"), ("%", "\\u0025")):
        text = text.replace(plain, escape)
    return text


NESTED = st.recursive(
    TEXTS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2).map(json.dumps),
        st.lists(inner, max_size=2).map(json.dumps).map(_hidden),
        st.dictionaries(TEXTS, inner, max_size=2).map(json.dumps).map(_hidden),
        st.dictionaries(TEXTS, inner, max_size=2).map(lambda value: json.dumps(value, ensure_ascii=False)),
    ),
    max_leaves=4,
)
RULES = st.one_of(
    NAMES.map(lambda name: Rule("model", EnvTarget(name))),
    st.just(Rule("model", FlagTarget("--flag"))),
    st.builds(
        lambda key, format_, merge: Rule("model", FileTarget("f", key), Shape(format=format_, merge=merge)),
        st.sampled_from(["k", "a.b"]),
        st.sampled_from(["toml", "json", "yaml"]),
        st.booleans(),
    ),
    st.builds(
        lambda name, fixed: Rule(
            "model",
            EnvTarget(name),
            Shape(format="json", template=json.dumps({"x": "${model}", "y": [fixed.replace("${", "$${")]})),
        ),
        NAMES,
        TEXTS,
    ),
)


@st.composite
def _launches(draw: st.DrawFn) -> tuple[Adapter, dict[str, str | list[str]], RunFacts]:
    rule = draw(RULES)
    start = Template(
        exec="prog",
        args=tuple(draw(st.lists(NESTED, max_size=2))),
        env=draw(st.dictionaries(NAMES, NESTED, max_size=2)),
    )
    declared = Posture(
        substitution=tuple(draw(st.lists(st.sampled_from(placeholders.SYNTAXES), min_size=1, unique=True))),
        isolation=draw(st.none() | st.just(Isolation(env={"ROOT": "r"}))),
        updates=draw(st.none() | st.builds(Updates, env=st.dictionaries(NAMES, TEXTS, max_size=1))),
    )
    adapter = replace(_adapter(rule), start=start, posture=declared)
    settings = NESTED.map(lambda text: text.replace("${", "$${"))  # a reference to another setting otherwise
    values = draw(st.dictionaries(NAMES.map("agent.{}".format), settings, max_size=3))
    given_model = draw(st.none() | settings | st.lists(settings, max_size=2))
    run = _run(base_environment=draw(st.dictionaries(NAMES, st.sampled_from(["", "v"]), max_size=3)))
    return adapter, values | ({} if given_model is None else {"model": given_model}), run


def _reachable(value: object) -> list[str]:
    """Return every text in a value, through JSON that stands in texts: by a parser, unlike what is tested."""
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in _reachable(part)]
    if isinstance(value, list):
        return [text for item in value for text in _reachable(item)]
    if not isinstance(value, str):
        return []
    try:
        inner = json.loads(value)
    except ValueError:
        return [value]
    return [value, *_reachable(inner)]


WRITTEN = {
    "{env:VAR}": "{{env:{}}}",
    "${VAR}": "${{{}}}",
    "${VAR:-text}": "${{{}:-}}",
    "%VAR%": "%{}%",
}


@given(_launches())
def test_nothing_rendered_names_a_variable_that_is_not_there(
    drawn: tuple[Adapter, dict[str, str | list[str]], RunFacts],
) -> None:
    adapter, values, run = drawn
    try:
        launch = render.render(adapter, values, run)
    except PlaceholderUnset as refused:
        shown = render.preview(adapter, values, run)
        assert tuple(refused.found) == shown.unset
        assert all(not shown.env.get(one.name or "") for one in refused.found)
        return

    reaches = [entry.value for entry in launch.variables if entry.source is not Source.INHERITED]
    reaches += [*launch.argv, *(file.content for file in launch.files)]
    reaches += [text for file in launch.merges for _, value in file.edits for text in _reachable(value)]
    for text in (found for value in reaches for found in _reachable(value)):
        for syntax in set(adapter.posture.substitution) & set(WRITTEN):
            for name in ("A", "B", "MODEL", "KEY", "_x"):
                assert WRITTEN[syntax].format(name) not in text or launch.env.get(name)


KEYS = ["model", "acp.args", "agent.A", "agent.B", "metering.base_url", "metering.upstream_api_key"]
SHAPES = {
    "env": [
        Shape(),
        Shape(format="json", template='{"a": "${model}", "l": ["${agent.A}"], "${agent.B}": 1}'),
    ],
    "flag": [Shape()],
    "file": [
        Shape(format=format_, merge=merge)
        for format_ in ("toml", "json", "yaml", "env")
        for merge in (True, False)
    ],
}
RULE = st.sampled_from(KEYS).flatmap(
    lambda key: (
        st.builds(
            Rule, st.just(key), st.builds(EnvTarget, st.sampled_from("XYZ")), st.sampled_from(SHAPES["env"])
        )
        | st.builds(Rule, st.just(key), st.builds(FlagTarget, st.sampled_from(["-x", "-y"])))
        | st.sampled_from(SHAPES["file"]).map(
            lambda shape: Rule(
                key, FileTarget(f"f.{shape.format}.{shape.merge}", f"k{KEYS.index(key)}"), shape
            )
        )
    )
)
TEXT = st.text(max_size=8).map(lambda text: text.replace("\0", "")) | st.sampled_from(
    ["7", "true", "${model}", "$${x}"]
)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(RULE, max_size=6, unique_by=lambda rule: (rule.key, rule.target)),
    st.dictionaries(st.sampled_from(KEYS), TEXT, max_size=6),
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from(TYPES), max_size=2),
    st.booleans(),
)
def test_the_same_facts_render_the_same_launch_or_the_same_refusal(
    rules: list[Rule], values: dict[str, str], types: dict[str, str], observed: bool
) -> None:
    adapter = replace(_adapter(*rules), types=types)
    run = _run(metering_base_url="http://127.0.0.1:1/tok", placeholder_key="tok") if observed else _run()
    before = dict(values)

    def once() -> object:
        try:
            return render.render(adapter, values, run)
        except (ReferenceRefused, ValueUnfit, ValueMissing, render.RenderRefused) as refused:
            assert refused.exit_code == 1
            return str(refused)

    assert once() == once()
    assert before == values


def test_whoever_shows_a_launch_knows_what_to_mask() -> None:
    rules = (Rule("agent.H", FlagTarget("-h")), Rule("model", EnvTarget("M")))
    values = {
        "agent.K": KEY,
        "agent.H": "Bearer ${agent.K}",
        "agent.U": "${metering.base_url}/x",
        "model": "m",
    }

    launch = render.render(
        _adapter(*rules),
        values,
        _run(metering_base_url="http://127.0.0.1:1/tok", secret_keys=frozenset({"agent.K"})),
    )

    assert launch.secret_texts == {KEY, f"Bearer {KEY}", "http://127.0.0.1:1/tok", "http://127.0.0.1:1/tok/x"}
    assert launch.argv[-2:] == ("-h", f"Bearer {KEY}")
    assert any("agent.H carries a secret and is delivered as -h" in notice for notice in launch.notices)
    assert KEY not in repr(launch)
