import re
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.manifest.conftest import BLOCKS

from kt_manifest.contract import manifest
from kt_manifest.contract.manifest import ManifestInvalid
from kt_manifest.contract.snapshot import Adapter, EnvTarget, FileTarget, FlagTarget, Rule, Shape


def _adapter(blocks: Mapping[str, str], more: str) -> Adapter:
    return manifest.parse("".join({**blocks, "config": "", "more": more}.values()), origin="a")


def _file(path: str = "c.json", key: str | None = "a") -> str:
    inner = f'path = "{path}"' + ("" if key is None else f', key = "{key}"')
    return f"file = {{ {inner} }}\n"


def test_a_rule_of_the_contract_is_refined(blocks: Mapping[str, str]) -> None:
    adapter = _adapter(
        blocks,
        "[config.model]\n" + _file() + '[kt.config.model]\nformat = "json"\nmerge = true\ntype = "string"\n',
    )

    assert (Rule("model", FileTarget("c.json", "a"), Shape(format="json", merge=True)),) == adapter.mapping
    assert {"model": "string"} == adapter.types
    assert adapter == Adapter.from_json(adapter.to_json())


def test_a_table_stands_alone_where_the_contract_has_no_such_target(blocks: Mapping[str, str]) -> None:
    text = '{"m": "${model}"}'
    adapter = _adapter(
        blocks,
        '[config."acp.command"]\nflag = "-c"\n'
        + '[kt.config.model]\nformat = "yaml"\n'
        + _file("c\\\\d.yaml", "a.b")
        + f'[kt.config."metering.base_url"]\nenv = "CONTENT"\ntemplate = \'{text}\'\n'
        + f'[kt.config."memory.dir"]\n{_file("t.txt", None)}format = "text"\ntemplate = \'x ${{model}}\'\n'
        + '[kt.config."agent.N"]\ntype = "integer"\nenv = "N"\ntemplate = \'{"n": "${agent.N}"}\'\n',
    )

    assert adapter.mapping == (
        Rule("acp.command", FlagTarget("-c")),
        Rule("model", FileTarget("c/d.yaml", "a.b"), Shape(format="yaml")),
        Rule("metering.base_url", EnvTarget("CONTENT"), Shape(format="json", template=text)),
        Rule("memory.dir", FileTarget("t.txt", ""), Shape(format="text", template="x ${model}")),
        Rule("agent.N", EnvTarget("N"), Shape(format="json", template='{"n": "${agent.N}"}')),
    )
    assert adapter == Adapter.from_json(adapter.to_json())


def test_without_additions_the_snapshot_is_what_it_was(valid: str) -> None:
    text = manifest.parse(valid, origin="a").to_json()

    assert '"mapping":[{"key":"model","env":"MODEL"}]' in text
    assert "shape" not in text and "types" not in text


MODEL = '[config.model]\nenv = "M"\n'
TEMPLATE = 'template = \'{"a": "${model}"}\'\n'
FAULTS = {
    "an empty key": ('[kt.config.""]\n' + _file() + 'format = "json"\n', '[kt.config.""]', "an empty key"),
    "an empty table": (MODEL + "[kt.config.model]\n", "[kt.config.model]", "an empty table"),
    "two targets": (
        '[kt.config.model]\nenv = "A"\n' + _file() + TEMPLATE,
        "[kt.config.model]",
        "got env and file, wanted at most one",
    ),
    "a target beside the contract's": (
        MODEL + "[kt.config.model]\n" + _file() + 'format = "json"\n',
        "[kt.config.model]",
        "got file beside [config.model], wanted one target for a key",
    ),
    "a form without a target": (
        '[kt.config.model]\nformat = "json"\n',
        "[kt.config.model]",
        "got format without a target",
    ),
    "a type that goes nowhere": (
        '[kt.config.model]\ntype = "integer"\n',
        "[kt.config.model]",
        "got type for a key that goes nowhere",
    ),
    "a plain variable": ('[kt.config.model]\nenv = "M"\n', "[kt.config.model]", "move env to [config.model]"),
    "a plain flag": ('[kt.config.model]\nflag = "-m"\n', "[kt.config.model]", "move flag to [config.model]"),
    "a plain file": ("[kt.config.model]\n" + _file(), "[kt.config.model]", "move file to [config.model]"),
    "a typed plain file": (
        "[kt.config.model]\n" + _file() + 'type = "integer"\n',
        "[kt.config.model]",
        "move file to [config.model]",
    ),
    "a path outside": (
        "[kt.config.model]\n" + _file("../x") + 'format = "json"\n',
        "[kt.config.model]",
        'file.path "../x"',
    ),
    "our own journal": (
        "[kt.config.model]\n" + _file(".KT.merged.json") + 'format = "json"\n',
        "[kt.config.model]",
        "kt's own file",
    ),
    "no key": (
        "[kt.config.model]\n" + _file(key=None) + 'format = "json"\n',
        "[kt.config.model]",
        "an empty key",
    ),
    "a key beside a template": (
        "[kt.config.model]\n" + _file() + 'format = "json"\n' + TEMPLATE,
        "[kt.config.model]",
        "got template beside file.key",
    ),
    "a variable's bad name": (
        '[kt.config.model]\nenv = "A B"\n' + TEMPLATE,
        "[kt.config.model]",
        "env: a name with a space",
    ),
    "a form of a flag": (
        '[config.model]\nflag = "-m"\n[kt.config.model]\nmerge = true\n',
        "[kt.config.model]",
        "got merge beside a flag",
    ),
    "a format of a variable": (
        MODEL + '[kt.config.model]\nformat = "json"\n',
        "[kt.config.model]",
        "format beside a",
    ),
    "a merge of a variable": (
        MODEL + "[kt.config.model]\nmerge = true\n",
        "[kt.config.model]",
        "merge beside a",
    ),
    "a variable in yaml": (
        MODEL + '[kt.config.model]\nformat = "yaml"\n' + TEMPLATE,
        "[kt.config.model]",
        'got format = "yaml", wanted one of json, text',
    ),
    "a text with keys": (
        "[kt.config.model]\n" + _file() + 'format = "text"\n',
        "[kt.config.model]",
        "wanted one of toml, json, yaml, env",
    ),
    "a merge of a text": (
        "[kt.config.model]\n" + _file(key=None) + 'format = "text"\nmerge = true\n' + TEMPLATE,
        "[kt.config.model]",
        "got merge of a text",
    ),
    "a nested variable": (
        "[kt.config.model]\n" + _file(key="a b") + 'format = "env"\n',
        "[kt.config.model]",
        'file.key "a b", wanted the name of a variable, for format env',
    ),
    "a template of another format": (
        MODEL + "[kt.config.model]\ntemplate = 'a = 1'\n",
        "[kt.config.model]",
        "template: line 1: Expecting value",
    ),
    "a template of an unknown key": (
        MODEL + '[kt.config.model]\ntemplate = \'{"a": "${modle}"}\'\n',
        "[kt.config.model]",
        "did you mean model",
    ),
    "two formats of a file": (
        "[config.model]\n" + _file() + '[kt.config."acp.args"]\n' + _file(key="b") + 'format = "json"\n',
        '[kt.config."acp.args"]',
        'format = "json", merge = false beside format = "toml", merge = false, for the same file as [config.model]',
    ),
    "a merge of half a file": (
        "[config.model]\n"
        + _file()
        + "[config.agent]\n"
        + _file(key="b")
        + "[kt.config.model]\nmerge = true\n",
        "[kt.config.model]",
        'merge = true beside format = "toml", merge = false, for the same file as [config.agent]',
    ),
    "a key under a template's": (
        "[kt.config.model]\n"
        + _file(key=None)
        + 'format = "json"\n'
        + TEMPLATE
        + '[kt.config."acp.args"]\n'
        + _file(key="a.b")
        + 'format = "json"\n',
        '[kt.config."acp.args"]',
        "a native key at or under one of [kt.config.model]",
    ),
    "one variable twice": (
        MODEL + '[kt.config."acp.args"]\nenv = "M"\n' + TEMPLATE,
        '[kt.config."acp.args"]',
        "the same variable as [config.model]",
    ),
    "a file in a file": (
        MODEL
        + '[kt.config."acp.args"]\n'
        + _file("d/e")
        + 'format = "json"\n[kt.config."acp.command"]\n'
        + _file("d")
        + 'format = "json"\n',
        '[kt.config."acp.command"]',
        "a file where a folder is needed",
    ),
    "two texts in a file": (
        "".join(
            f'[kt.config."{key}"]\n' + _file("t", None) + "format = \"text\"\ntemplate = 'x'\n"
            for key in ("model", "acp.args")
        ),
        '[kt.config."acp.args"]',
        "the same file, which is one text",
    ),
    "an unknown key": (MODEL + "[kt.config.model]\nformt = 1\n", "[kt.config.model]", "did you mean format"),
    "an unknown word": (MODEL + '[kt.config.model]\ntype = "int"\n', "[kt.config.model]", 'type = "int"'),
    "a wrong type": (MODEL + "[kt.config.model]\nmerge = 1\n", "[kt.config.model]", "wanted true or false"),
    "no table": (MODEL + "[kt.config]\nmodel = 1\n", "[kt.config.model]", "wanted a table"),
    "an unquoted key": (
        '[kt.config.metering.base_url]\nenv = "X"\n' + TEMPLATE,
        "[kt.config.metering]",
        'quote a dotted key: [kt.config."metering.base_url"]',
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_named_by_its_section(blocks: Mapping[str, str], name: str) -> None:
    more, section, told = FAULTS[name]

    with pytest.raises(ManifestInvalid, match=re.escape(told)) as caught:
        _adapter(blocks, more)

    assert section == caught.value.section
    assert caught.value.got and caught.value.wanted and caught.value.do


def test_a_fault_of_the_contract_comes_first(blocks: Mapping[str, str]) -> None:
    more = '[config.model]\nenv = "A"\nflag = "-m"\n[kt.config.model]\nformat = "json"\n'

    with pytest.raises(ManifestInvalid) as caught:
        _adapter(blocks, more)

    assert "[config.model]" == caught.value.section


FIELDS = {
    "env": ['"M"', '""', "1"],
    "flag": ['"-m"'],
    "file": [
        "{}",
        '{ path = "c" }',
        '{ path = "c", key = "a" }',
        '{ key = "a" }',
        '{ path = "../c" }',
        '"c"',
    ],
    "format": ['"toml"', '"json"', '"yaml"', '"env"', '"text"', '"xml"', "1"],
    "type": ['"integer"', '"json"', "true"],
    "merge": ["true", "false", '"yes"'],
    "template": ["'{}'", "''", "'${model}'", "'a: ${x}'", '"${"', "1"],
}
TABLE = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in FIELDS.items()})


@settings(max_examples=150, deadline=None)
@given(TABLE, TABLE, TABLE)
def test_whatever_stands_there_is_accepted_or_named(
    refined: dict[str, str], refining: dict[str, str], alone: dict[str, str]
) -> None:
    text = "".join(BLOCKS.values()).replace('[config.model]\nenv = "MODEL"\n', "")
    for section, table in (
        ("config.model", refined),
        ("kt.config.model", refining),
        ('kt.config."acp.args"', alone),
    ):
        kept = {
            name: value
            for name, value in table.items()
            if section[0] == "k" or name in ("env", "flag", "file")
        }
        text += f"[{section}]\n" + "".join(f"{name} = {value}\n" for name, value in kept.items())

    found = manifest.faults(text, origin="a")
    try:
        adapter = manifest.parse(text, origin="a")
    except ManifestInvalid as error:
        assert str(error) == str(found[0])
        assert error.section.startswith("[")
    else:
        assert [] == found
        assert adapter == Adapter.from_json(adapter.to_json())
