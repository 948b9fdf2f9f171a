import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from kt_manifest.contract import kinds
from kt_manifest.contract.snapshot import FileTarget, Rule, Shape
from kt_manifest.launch import native_file
from kt_manifest.launch.agent_home import RenderedFile, RenderRefused
from kt_manifest.launch.delivery import Delivery
from kt_manifest.launch.native import yaml_file
from kt_manifest.launch.native_file import MergedFile
from kt_manifest.launch.run_facts import RunFacts

HEADER = "# Rendered by kt for instance i, run r; rewritten at each start.\n"
VALUES: dict[str, str | list[str]] = {"model": "5", "agent.N": "7", "acp.args": ["a", "b c"]}
TYPES = {"agent.N": "integer"}


def _of(
    *rules: Rule, values: dict[str, str | list[str]] | None = None
) -> tuple[tuple[RenderedFile, ...], tuple[MergedFile, ...]]:
    run = RunFacts(home=Path("/h"), base_environment={}, instance_id="i", run_id="r")
    adapter = replace(kinds.command(["p"], interactive=False, observe=False), mapping=rules, types=TYPES)
    return native_file.of(adapter, Delivery(VALUES if values is None else values, run, TYPES), run)


def _rules(format_: str, *, merge: bool = False) -> tuple[Rule, ...]:
    shape = Shape(format=format_, merge=merge)
    keys = ("M", "N", "L") if format_ == "env" else ("llm.model", "llm.n", "list")
    return tuple(
        Rule(key, FileTarget(f"a.{format_}", native), shape)
        for key, native in zip(("model", "agent.N", "acp.args"), keys, strict=True)
    )


WANTED = {"llm": {"model": "5", "n": 7}, "list": ["a", "b c"]}


def test_values_are_typed_in_every_format_and_only_json_has_no_header() -> None:
    [toml], [json_], [yaml], [env] = (_of(*_rules(format_))[0] for format_ in ("toml", "json", "yaml", "env"))

    assert WANTED == tomllib.loads(toml.content) == json.loads(json_.content) == yaml_file.read(yaml.content)
    assert f"{HEADER}M=5\nN=7\nL='a '\"'\"'b c'\"'\"''\n" != env.content
    assert env.content == f"{HEADER}M=5\nN=7\nL=\"a 'b c'\"\n"
    assert [True, False, True, True] == [file.content.startswith(HEADER) for file in (toml, json_, yaml, env)]
    assert [True, False, True, True] == [file.marked for file in (toml, json_, yaml, env)]


def test_a_merged_file_is_its_values_only() -> None:
    files, merges = _of(*_rules("yaml", merge=True))

    assert ((), MergedFile) == (files, type(merges[0]))
    assert ((("llm", "model"), "5"), (("llm", "n"), 7), (("list",), ["a", "b c"])) == merges[0].edits
    assert "5" not in repr(merges[0])


@pytest.mark.parametrize("merge", [True, False])
def test_without_values_there_is_nothing_in_it(merge: bool) -> None:
    files, merges = _of(*_rules("json", merge=merge), values={})

    assert ((), (MergedFile("a.json", "json", ()),)) == (files, merges) or (
        (RenderedFile("a.json", "", marked=False),),
        (),
    ) == (files, merges)


def test_a_template_is_the_whole_file_or_its_leaves() -> None:
    target, text = (
        FileTarget("c.toml", ""),
        'a = "${model}"\n[t]\nn = "${agent.N}"\ngone = "${agent.X}"\nk = true\n',
    )

    [whole], _ = _of(Rule("model", target, Shape(template=text)))
    _, [merged] = _of(Rule("model", target, Shape(template=text, merge=True)))

    assert {"a": "5", "t": {"n": 7, "k": True}} == tomllib.loads(whole.content)
    assert ((("a",), "5"), (("t", "n"), 7), (("t", "k"), True)) == merged.edits


def test_a_template_without_its_own_key_delivers_nothing() -> None:
    rule = Rule("memory.dir", FileTarget("c.toml", ""), Shape(template='a = "${model}"'))

    assert RenderedFile("c.toml", "") == _of(rule)[0][0]


def test_a_text_is_delivered_as_it_is() -> None:
    rule = Rule("model", FileTarget("c.txt", ""), Shape(format="text", template="m=${model}\n"))

    assert RenderedFile("c.txt", "m=5\n", marked=False) == _of(rule)[0][0]
    assert RenderedFile("c.txt", "", marked=False) == _of(rule, values={})[0][0]


def test_a_template_and_a_rule_may_share_a_file() -> None:
    rules = (
        Rule("model", FileTarget("c.json", ""), Shape(format="json", template='{"t": {"m": "${model}"}}')),
        Rule("agent.N", FileTarget("c.json", "t.n"), Shape(format="json")),
    )

    assert {"t": {"m": "5", "n": 7}} == json.loads(_of(*rules)[0][0].content)


def test_two_values_in_one_place_are_refused_where_no_manifest_could_tell() -> None:
    rules = (
        Rule("model", FileTarget("c.json", ""), Shape(format="json", template='{"${model}": 1}')),
        Rule("agent.N", FileTarget("c.json", "5"), Shape(format="json")),
    )

    with pytest.raises(RenderRefused, match='two values at "5"'):
        _of(*rules)


def test_toml_cannot_say_null() -> None:
    rule = Rule("agent.N", FileTarget("c.toml", "x"))
    run = RunFacts(home=Path("/h"), base_environment={})
    adapter = replace(kinds.command(["p"], interactive=False, observe=False), mapping=(rule,))

    with pytest.raises(RenderRefused, match='null at "x", which TOML cannot say'):
        native_file.of(adapter, Delivery({"agent.N": '[{"a": null}]'}, run, {"agent.N": "json"}), run)
