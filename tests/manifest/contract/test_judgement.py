import itertools

import pytest

from kt_manifest.contract import judgement, manifest

# What each step's breaks do: (step, block, its replacement, the section that is named, the kind of the fault).
# The order of this table is the order of judgement.
BREAKS = [
    ("toml", "more", "x = = 1\n", "line 23", "toml"),
    ("toml", "more", 'x = "\n', "line 23", "toml"),
    ("toml", "more", "[twice]\n[twice]\n", "line 23", "toml"),
    ("unknown key", "more", "[extra]\n", "[extra]", "unknown_key"),
    ("unknown key", "config", "[config.metering.base_url]\nenv = 'X'\n", "[config.metering]", "unknown_key"),
    ("unknown key", "more", "[kt.other]\n", "[kt.other]", "unknown_key"),
    ("unknown word", "interaction", '[interaction]\nchannel = "tcp"\n', "[interaction]", "unknown_word"),
    ("unknown word", "metering", '[metering]\nsource = "guessed"\n', "[metering]", "unknown_word"),
    ("contract_version", "contract_version", "", "contract_version", "missing_section"),
    (
        "contract_version",
        "contract_version",
        'contract_version = ""\n',
        "contract_version",
        "missing_section",
    ),
    (
        "contract_version",
        "contract_version",
        'contract_version = "v1.0.0"\n',
        "contract_version",
        "invalid_field",
    ),
    ("contract_version", "contract_version", "contract_version = 1\n", "contract_version", "invalid_field"),
    ("[adapter]", "adapter", "", "[adapter]", "missing_section"),
    ("[adapter]", "adapter", "[adapter]\n", "[adapter]", "missing_section"),
    ("kind", "adapter", '[adapter]\nname = "N"\n', "[adapter]", "invalid_field"),
    ("kind", "adapter", '[adapter]\nkind = "My Agent"\n', "[adapter]", "invalid_field"),
    ("kind", "adapter", '[adapter]\nkind = "mock"\n', "[adapter]", "invalid_field"),
    ("kind", "adapter", "[adapter]\nkind = true\n", "[adapter]", "invalid_field"),
    ("[lifecycle]", "lifecycle", "", "[lifecycle]", "missing_section"),
    ("start", "lifecycle", "[lifecycle]\n", "[lifecycle.start]", "missing_section"),
    ("start", "lifecycle", '[lifecycle.stop]\nexec = "x"\n', "[lifecycle.start]", "missing_section"),
    ("start", "lifecycle", '[lifecycle.start]\nexec = "./x"\n', "[lifecycle.start]", "invalid_field"),
    (
        "start",
        "lifecycle",
        '[lifecycle.start]\nexec = "x"\nargs = [1]\n',
        "[lifecycle.start]",
        "invalid_field",
    ),
    ("[capabilities]", "capabilities", "", "[capabilities]", "missing_section"),
    ("[capabilities]", "capabilities", "[capabilities]\n", "[capabilities]", "missing_section"),
    (
        "[capabilities]",
        "capabilities",
        '[capabilities.pause]\nlinux = "unsupported"\n',
        "[capabilities]",
        "missing_section",
    ),
    (
        "[capabilities]",
        "capabilities",
        "[capabilities.pause]\nlinux = 1\n",
        "[capabilities.pause]",
        "invalid_field",
    ),
    ("[metering]", "metering", "", "[metering]", "missing_section"),
    ("[metering]", "metering", "[metering]\n", "[metering]", "missing_section"),
    ("[metering]", "metering", "[metering]\nsource = 1\n", "[metering]", "invalid_field"),
    ("config rules", "config", "[config.model]\n", "[config.model]", "invalid_field"),
    ("config rules", "config", '[config.model]\nenv = ""\n', "[config.model]", "invalid_field"),
    ("config rules", "config", "[config]\nmodel = 1\n", "[config.model]", "invalid_field"),
    ("negotiation", "contract_version", 'contract_version = "2.0.0"\n', "", ""),
    ("negotiation", "contract_version", 'contract_version = "0.9.0"\n', "", ""),
]
STEPS = list(dict.fromkeys(step for step, *_ in BREAKS))
# Two breaks of one block cannot both be in a file; every pair of steps but these has at least one that can.
IMPOSSIBLE = {
    frozenset({"contract_version", "negotiation"}),
    frozenset({"[adapter]", "kind"}),
    frozenset({"[lifecycle]", "start"}),
}
PAIRS = [
    (first, second)
    for first, second in itertools.combinations(BREAKS, 2)
    if first[0] != second[0] and first[1] != second[1]
]


def _judged(blocks: dict[str, str], *breaks: tuple[str, ...]) -> tuple[str, str]:
    text = "".join((blocks | {block: replacement for _, block, replacement, *_ in breaks}).values())
    try:
        manifest.parse(text, origin="adapter.toml")
    except manifest.ManifestInvalid as error:
        return error.section.split(" ")[0], error.kind
    except manifest.ContractIncompatible:
        return "", ""
    pytest.fail(f"accepted: {text}")


@pytest.mark.parametrize("broken", BREAKS, ids=lambda broken: f"{broken[0]}-{broken[2][:24]!r}")
def test_each_break_is_named_by_its_section_and_kind(blocks: dict[str, str], broken: tuple[str, ...]) -> None:
    expected = (broken[3].split(" ")[0], broken[4])

    assert expected == _judged(blocks, broken)


def test_of_every_two_breaks_the_earlier_step_wins(blocks: dict[str, str]) -> None:
    wrong = [
        (first, second, judged)
        for first, second in PAIRS
        if (judged := _judged(blocks, first, second)) != (first[3].split(" ")[0], first[4])
    ]

    assert wrong == []


def test_every_possible_pair_of_steps_is_among_the_pairs() -> None:
    wanted = {frozenset(pair) for pair in itertools.combinations(STEPS, 2)} - IMPOSSIBLE

    assert wanted == {frozenset({first[0], second[0]}) for first, second in PAIRS}


def test_the_table_has_the_steps_of_the_contract_in_its_order() -> None:
    steps = [step for step, _ in judgement.JUDGEMENT]

    # TOML comes before there is a document to judge, negotiation after nothing is wrong with it.
    assert STEPS[1:-1] == [step for step in steps if step in STEPS]
    assert {"name", "stop, pause, resume", "[interaction]", "[kt]", "[kt.config]"} == set(steps) - set(STEPS)


def test_all_faults_are_given_in_the_order_of_judgement(blocks: dict[str, str]) -> None:
    broken = blocks | {"adapter": "", "metering": "", "more": "[extra]\n"}

    found = manifest.faults("".join(broken.values()), origin="adapter.toml")

    assert [fault.section for fault in found] == ["[extra]", "[adapter]", "[metering]"]


@pytest.mark.parametrize(
    ("block", "text", "kind"),
    [
        ("config", '[config.metering.base_url]\nenv = "X"\n', "unknown_key"),
        ("config", '[config.model]\nevn = "X"\n', "unknown_key"),
        ("adapter", '[adapter]\nkid = "x"\n', "unknown_key"),
        ("lifecycle", '[lifecycle.start]\nexe = "x"\n', "unknown_key"),
        ("metering", '[metering]\nsorce = "self-reported"\n', "unknown_key"),
        ("more", '[kt.updates]\nconfig = { env = "X", key = "a", valeu = false }\n', "unknown_key"),
        ("more", '[kt.updates]\nenvv = { A = "1" }\n', "unknown_key"),
        ("more", '[kt.isolation]\nenvv = { A = "a" }\n', "unknown_key"),
        ("more", '[kt.substitution]\nsyntaxx = ["$VAR"]\n', "unknown_key"),
        ("more", '[kt.send]\nurll = "http://127.0.0.1:1/"\n', "unknown_key"),
        ("more", '[kt.ready]\nlin = "x"\n', "unknown_key"),
        ("more", '[kt.config.a]\nformat = "json"\nfiel = { path = "a.json", key = "a" }\n', "unknown_key"),
        (
            "more",
            '[kt.config."agent.X"]\nfile = { path = "a.json", key = "x" }\nformat = "jsn"\n',
            "unknown_word",
        ),
    ],
)
def test_a_slip_is_told_once(blocks: dict[str, str], block: str, text: str, kind: str) -> None:
    found = manifest.faults("".join((blocks | {block: text}).values()), origin="adapter.toml")

    assert [kind] == [fault.kind for fault in found]


def test_what_is_wrong_besides_an_unknown_key_is_told_as_well(blocks: dict[str, str]) -> None:
    text = '[config.model]\nevn = "X"\n[config.other]\n'

    found = manifest.faults("".join((blocks | {"config": text}).values()), origin="adapter.toml")

    assert ["[config.model]", "[config.other]"] == [fault.section for fault in found]


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("1.0.0", True),
        (" 1.0.0 ", True),
        ("1.0.0-rc.1+build.5", True),
        ("18446744073709551615.0.0", True),
        ("18446744073709551616.0.0", False),
        ("1.0", False),
        ("1", False),
        ("v1.0.0", False),
        ("01.0.0", False),
        ("1.0.0-", False),
        ("1.0.0.0", False),
        ("1.1٠.0", False),
        ("9" * 5000 + ".0.0", False),
        ("", False),
    ],
)
def test_a_version_is_strict_semver(text: str, is_one: bool) -> None:
    assert is_one == (judgement.version(text) is not None)


@pytest.mark.parametrize(
    ("block", "text", "section", "says"),
    [
        ("adapter", '[adapter]\nkind = "a"\nname = "a\\u001b[2J"\n', "[adapter]", "control character"),
        ("adapter", '[adapter]\nkind = "a"\nname = 3\n', "[adapter]", "name = 3 (an integer)"),
        ("interaction", "[interaction]\nchannel = 3\n", "[interaction]", "channel = 3"),
        ("metering", '[metering]\nsource = "Self-Reported"\n', "[metering]", "lower case"),
        (
            "capabilities",
            '[capabilities.pause]\nbsd = "guaranteed"\n',
            "[capabilities.pause]",
            "linux, macos",
        ),
        (
            "capabilities",
            '[capabilities.memory]\nlinux = "guaranteed"\n',
            "[capabilities.memory]",
            "pause, inter",
        ),
        ("capabilities", '[capabilities]\npause = "guaranteed"\n', "[capabilities.pause]", "wanted a table"),
        ("more", "[kt]\nx = 1\n", "[kt]", "wanted only"),
        ("more", "[kt.send]\n", "[kt.send]", "no url"),
        ("more", "[kt.send]\nurl = 3\n", "[kt.send]", "url = 3"),
        ("more", '[kt.send]\nurl = "http://127.0.0.1:1/"\nmethod = "PUT"\n', "[kt.send]", "the unknown key"),
        *(
            ("more", f'[kt.send]\nurl = "{url}"\n', "[kt.send]", "an http URL of this machine")
            for url in (
                "https://127.0.0.1:80/",
                "http://127.0.0.1/",
                "http://10.0.0.1:80/",
                "http://user@127.0.0.1:80/",
                "http://127.0.0.1:80/#x",
                "http://127.0.0.1:99999/",
                "http://127.0.0.1.evil.example:80/",
                "http://127.0.0.1:80/a b",
                "",
            )
        ),
        ("more", "[[kt]]\n", "[kt]", "wanted a table"),
        ("lifecycle", '[lifecycle.start]\nexec = "x"\n[lifecycle.stop]\n', "[lifecycle.stop]", "no exec"),
        ("lifecycle", '[lifecycle.start]\nexec = "x"\nenv = 3\n', "[lifecycle.start]", "env = 3"),
        ("lifecycle", '[lifecycle.start]\nexec = "x"\nenv = {"A=B" = "c"}\n', "[lifecycle.start]", "'='"),
        ("lifecycle", '[lifecycle.start]\nexec = "x"\nenv = {A = "\\u0000"}\n', "[lifecycle.start]", "NUL"),
        ("lifecycle", '[lifecycle.start]\nexec = "x"\nargs = ["\\u0000"]\n', "[lifecycle.start]", "NUL"),
        (
            "lifecycle",
            '[lifecycle.start]\nexec = "x"\nargs = "x"\n',
            "[lifecycle.start]",
            "an array of strings",
        ),
        ("lifecycle", "lifecycle = 3\n[metering2]\n", "[metering2]", "did you mean metering"),
        ("lifecycle", '[lifecycle.start]\nexe = "x"\n', "[lifecycle.start]", "did you mean exec"),
        ("lifecycle", '[lifecycle.restart]\nexec = "x"\n', "[lifecycle.restart]", "did you mean start"),
    ],
)
def test_a_fault_says_where_and_what(
    blocks: dict[str, str], block: str, text: str, section: str, says: str
) -> None:
    # A top-level value has to stand before the first table.
    broken = blocks | (
        {block: "", "contract_version": blocks["contract_version"] + text}
        if text[0] == "l"
        else {block: text}
    )

    with pytest.raises(manifest.ManifestInvalid) as caught:
        manifest.parse("".join(broken.values()), origin="adapter.toml")

    assert section == caught.value.section
    assert says in str(caught.value)


def test_a_section_that_is_no_table_is_an_invalid_one(blocks: dict[str, str]) -> None:
    for name in ("adapter", "lifecycle", "capabilities", "metering", "interaction", "config"):
        broken = blocks | {name: "", "contract_version": f'contract_version = "1.0.0"\n{name} = 3\n'}

        with pytest.raises(manifest.ManifestInvalid) as caught:
            manifest.parse("".join(broken.values()), origin="adapter.toml")

        assert (f"[{name}]", "invalid_field") == (caught.value.section, caught.value.kind)
