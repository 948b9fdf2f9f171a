import pytest

from kt_manifest.contract import findings, manifest, schema


@pytest.mark.parametrize(
    ("loc", "text"),
    [
        (("contract_version",), "contract_version"),
        (("adapter",), "[adapter]"),
        (("lifecycle", "start"), "[lifecycle.start]"),
        (("config", "metering.base_url"), '[config."metering.base_url"]'),
        (("config", ""), '[config.""]'),
        (("config", "a\n\x1b"), '[config."a\\n\\x1b"]'),
    ],
)
def test_a_section_is_written_as_in_the_file(loc: schema.Loc, text: str) -> None:
    assert text == findings.section(loc)


def test_a_section_of_any_length_is_short_in_a_message() -> None:
    assert len(findings.section(("config", "x" * 10_000))) < 120


@pytest.mark.parametrize(
    ("loc", "value", "text"),
    [
        (("extra",), 1, "extra"),
        (("extra",), {}, "[extra]"),
        (("adapter", "knd"), "x", "[adapter]"),
        (("lifecycle", "restart"), {}, "[lifecycle.restart]"),
        (("lifecycle", "start", "exe"), "x", "[lifecycle.start]"),
        (("config", "a", "b"), {}, "[config.a]"),
        (("config", "a", "file", "x"), 1, "[config.a]"),
        (("kt", "ready"), {}, "[kt.ready]"),
    ],
)
def test_an_unknown_key_is_placed_where_the_reader_will_look(
    loc: schema.Loc, value: object, text: str
) -> None:
    assert text == findings.place(loc, value)


def test_a_draft_is_read_without_trusting_its_types() -> None:
    draft = findings.Draft({"a": {"b": [1]}, "c": 3}, ())

    assert draft.get("a", "b") == [1]
    assert draft.get("c", "d") is None
    assert draft.table("c") == {}
    assert draft.items("a", "b") == [1]
    assert draft.items("c") == []
    assert tuple(draft.is_table_or_absent(name) for name in ("a", "c", "nothing")) == (True, False, True)


def test_a_rule_of_the_wrong_type_is_one_fault_only(valid: str) -> None:
    text = valid.replace('[config.model]\nenv = "MODEL"\n', "[config]\nmodel = 1\n")

    assert [fault.section for fault in manifest.faults(text, origin="x")] == ["[config.model]"]
