import pytest

from kt_manifest.contract import manifest
from kt_manifest.contract.snapshot import EnvTarget, FileTarget, FlagTarget, Rule


def _parse(blocks: dict[str, str], config: str) -> tuple[Rule, ...]:
    return manifest.parse("".join((blocks | {"config": config}).values()), origin="adapter.toml").mapping


def test_each_target_becomes_a_rule_in_the_order_of_the_file(blocks: dict[str, str]) -> None:
    config = (
        '[config."metering.base_url"]\nflag = "--base-url"\n[config.model]\nenv = "MODEL"\n'
        '[config."acp.args"]\nfile = { path = "config\\\\agent.toml", key = "llm.args" }\n'
    )

    assert _parse(blocks, config) == (
        Rule("metering.base_url", FlagTarget("--base-url")),
        Rule("model", EnvTarget("MODEL")),
        Rule("acp.args", FileTarget("config/agent.toml", "llm.args")),
    )


def test_two_keys_may_share_a_file(blocks: dict[str, str]) -> None:
    config = (
        '[config.a]\nfile = { path = "c/a.toml", key = "x.a" }\n[config.b]\nfile = { path = "c/a.toml", key = "x.b" }\n'
        '[config.c]\nfile = { path = "c/b.toml", key = "x.a" }\n[config.d]\nfile = { path = "c/ab", key = "x.a" }\n'
    )

    assert len(_parse(blocks, config)) == 4


@pytest.mark.parametrize(
    ("config", "section", "says"),
    [
        ('[config.""]\nenv = "A"\n', '[config.""]', "empty key"),
        ("[config.model]\n", "[config.model]", "no target"),
        ('[config.model]\nenv = "A"\nflag = "--a"\n', "[config.model]", "env and flag"),
        ('[config.model]\nenv = "A"\nfile = { path = "a", key = "b" }\n', "[config.model]", "env and file"),
        ('[config.model]\nenv = ""\n', "[config.model]", "an empty name"),
        ('[config.model]\nenv = "A=B"\n', "[config.model]", "'='"),
        ('[config.model]\nenv = "A\\u0000"\n', "[config.model]", "control character"),
        ("[config.model]\nenv = 3\n", "[config.model]", "env = 3 (an integer)"),
        ('[config.model]\nflag = ""\n', "[config.model]", "an empty flag"),
        ('[config.model]\nflag = "--a\\u0000"\n', "[config.model]", "NUL"),
        ("[config.model]\nfile = {}\n", "[config.model]", "an empty path"),
        ('[config.model]\nfile = { path = "a" }\n', "[config.model]", "an empty key"),
        ('[config.model]\nfile = { path = "a", key = "" }\n', "[config.model]", "an empty key"),
        ('[config.model]\nfile = { path = "a", key = "b..c" }\n', "[config.model]", "an empty segment"),
        ('[config.model]\nfile = { path = "a", key = "b\\u001b" }\n', "[config.model]", "control character"),
        ('[config.model]\nfile = { path = "/etc/x", key = "k" }\n', "[config.model]", "absolute"),
        ('[config.model]\nfile = { path = "../x", key = "k" }\n', "[config.model]", "'..'"),
        ('[config.model]\nfile = { path = "config.toml", key = "k" }\n', "[config.model]", "kt's own file"),
        ('[config.model]\nfile = "a"\n', "[config.model]", 'file = "a"'),
        ('[config.model]\nfile = { path = 1, key = "k" }\n', "[config.model]", "file.path = 1"),
        ('[config.a]\nenv = "A"\n[config.b]\nenv = "A"\n', "[config.b]", "same target as in [config.a]"),
        ('[config.a]\nflag = "-a"\n[config."b.c"]\nflag = "-a"\n', '[config."b.c"]', "same target"),
        (
            '[config.a]\nfile = { path = "a/b", key = "k" }\n[config.b]\nfile = { path = "a\\\\b", key = "k" }\n',
            "[config.b]",
            "same target",
        ),
        (
            '[config.a]\nfile = { path = "a", key = "k" }\n[config.b]\nfile = { path = "a", key = "k.l" }\n',
            "[config.b]",
            "native key under a value",
        ),
        (
            '[config.a]\nfile = { path = "a", key = "k.l" }\n[config.b]\nfile = { path = "a", key = "k" }\n',
            "[config.b]",
            "native key under a value",
        ),
        (
            '[config.a]\nfile = { path = "a/b", key = "k" }\n[config.b]\nfile = { path = "a", key = "l" }\n',
            "[config.b]",
            "a file where a folder is needed",
        ),
    ],
)
def test_a_rule_that_cannot_be_kept_is_refused(
    blocks: dict[str, str], config: str, section: str, says: str
) -> None:
    with pytest.raises(manifest.ManifestInvalid) as caught:
        _parse(blocks, config)

    assert (section, "invalid_field") == (caught.value.section, caught.value.kind)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("config", "hint"),
    [
        ('[config.metering.base_url]\nenv = "A"\n', '[config."metering.base_url"]'),
        ('[config.budget.tokens.per_run]\nenv = "A"\n', '[config."budget.tokens.per_run"]'),
        ('config.memory.dir.env = "A"\n', '[config."memory.dir"]'),
        ('[config.model]\nenv = "A"\n[config.model.size]\nflag = "-s"\n', '[config."model.size"]'),
        ("[config.metering.base_url]\n", '[config."metering.base_url"]'),
    ],
)
def test_an_unquoted_dotted_key_is_refused_with_the_hint_to_quote_it(
    blocks: dict[str, str], config: str, hint: str
) -> None:
    broken = (
        {"contract_version": blocks["contract_version"] + config, "config": ""}
        if config[0] == "c"
        else {"config": config}
    )

    with pytest.raises(manifest.ManifestInvalid) as caught:
        manifest.parse("".join((blocks | broken).values()), origin="adapter.toml")

    assert caught.value.kind == "unknown_key"
    assert f"quote a dotted key: {hint}" == caught.value.do


def test_an_unknown_key_that_is_no_table_gets_no_such_hint(blocks: dict[str, str]) -> None:
    with pytest.raises(manifest.ManifestInvalid) as caught:
        _parse(blocks, '[config.model]\nenvv = "A"\n')

    assert caught.value.do == "did you mean env?"
