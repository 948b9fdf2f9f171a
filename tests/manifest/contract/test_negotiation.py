"""Negotiation: majors decide, on every read, in the contract's own words; what is no version is another fault."""

import random
import re
from pathlib import Path

import pytest

from kt_manifest.contract import judgement, manifest

# semver.org's own pattern (2.0.0, "Is there a suggested regular expression"), ASCII digits: the judge of these tests.
SEMVER = re.compile(
    r"(?P<major>0|[1-9][0-9]*)\.(?P<minor>0|[1-9][0-9]*)\.(?P<patch>0|[1-9][0-9]*)"
    r"(?:-(?:(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+(?:[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?"
)
# Unicode's White_Space, as an independent reader has it: what Python takes for space but U+001C to U+001F.
SPACE = [chr(point) for point in range(0x3001) if chr(point).isspace() and not 0x1C <= point <= 0x1F]


def expected(text: str) -> str:
    """Return what a version is, as an independent reader has it."""
    trimmed = text.strip("".join(SPACE))
    if not trimmed:
        return "missing_section"
    found = SEMVER.fullmatch(trimmed)
    if found is None or any(
        len(part) > 20 or int(part) >= 2**64 for part in found.group("major", "minor", "patch")
    ):
        return "invalid_field"
    return "accepted" if int(found["major"]) == 1 else "incompatible_contract"


def outcome(valid: str, version: str) -> str:
    literal = "".join(f"\\U{ord(char):08x}" for char in version)
    faults = manifest.faults(valid.replace('"1.0.0"', f'"{literal}"'), origin="adapter.toml")
    return faults[0].kind if faults else "accepted"


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("1.0.0", "accepted"),
        ("1.0.0+b", "accepted"),
        ("1.0.0-rc.1+build.5", "accepted"),
        ("\u2003 1.0.0\n", "accepted"),
        ("1.99.0", "accepted"),
        ("2.0.0", "incompatible_contract"),
        ("2.0.0-rc.1", "incompatible_contract"),
        ("2.0.0+1.0.0", "incompatible_contract"),
        ("0.9.0", "incompatible_contract"),
        ("0.0.1", "incompatible_contract"),
        ("0.9", "invalid_field"),
        ("10.0.0", "incompatible_contract"),
        ("11.1.1", "incompatible_contract"),
        ("18446744073709551615.0.0", "incompatible_contract"),
        ("18446744073709551616.0.0", "invalid_field"),
        ("1.0.18446744073709551616", "invalid_field"),
        ("1" * 5000 + ".0.0", "invalid_field"),
        ("01.0.0", "invalid_field"),
        ("1", "invalid_field"),
        ("1.0", "invalid_field"),
        ("v1.0.0", "invalid_field"),
        ("=1.0.0", "invalid_field"),
        ("1.0.0 ", "accepted"),
        ("1.0.0 2.0.0", "invalid_field"),
        ("\u0661.0.0", "invalid_field"),
        ("\uff11.0.0", "invalid_field"),
        ("\u00b9.0.0", "invalid_field"),
        ("1\u30020.0", "invalid_field"),
        ("1.0.0-\u0661", "invalid_field"),
        ("1.0.0\0", "invalid_field"),
        ("1.0.0\x1f", "invalid_field"),
        ("\x1c", "invalid_field"),
        ("", "missing_section"),
        (" \t\n", "missing_section"),
    ],
    ids=lambda value: ascii(value)[:24],
)
def test_majors_decide_and_what_is_no_version_is_no_version(valid: str, version: str, kind: str) -> None:
    assert kind == outcome(valid, version)
    assert kind == expected(version)


def test_mutations_of_versions_are_judged_as_an_independent_reader_judges_them(valid: str) -> None:
    seed = random.SystemRandom().randrange(2**32)
    chance = random.Random(seed)
    begin = ["1.0.0", "1.2.3-rc.1+build.5", "2.0.0-alpha", "0.1.0", "10.20.30", "1.0.0-0.3.7", "1.0.0--.-+-"]
    pieces = [
        "0",
        "1",
        "9",
        ".",
        "-",
        "+",
        "v",
        "a",
        "Z",
        "_",
        " ",
        "\t",
        "\u0663",
        "\uff12",
        "\u00a0",
        "00",
        "x",
        "-0",
    ]
    seen = set()
    for _ in range(1500):
        text = chance.choice(begin)
        for _ in range(chance.randrange(4)):
            at = chance.randrange(len(text) + 1)
            text = text[:at] + chance.choice([*pieces, ""]) + text[at + chance.randrange(3) :]
        seen.add(expected(text))
        assert expected(text) == outcome(valid, text), f"seed {seed}: {text!r}"
    assert {"accepted", "invalid_field", "incompatible_contract"} <= seen


def test_the_refusal_is_the_contracts_own_to_the_letter(valid: str, tmp_path: Path) -> None:
    (tmp_path / "adapter.toml").write_text(valid.replace('"1.0.0"', '" 2.1.0 "'))

    with pytest.raises(manifest.ContractIncompatible) as refused:
        manifest.load(tmp_path)

    assert (
        "incompatible adapter contract: manifest declares 2.1.0, engine speaks 1.0.0 — compatible iff the major "
        "versions match (contract v1 policy, docs/adapter-contract.md#versioning)"
    ) == str(refused.value)
    assert [str(refused.value)] == [str(fault) for fault in manifest.judge(tmp_path).faults]


def test_a_version_of_another_major_is_told_after_every_other_fault(valid: str) -> None:
    broken = valid.replace('"1.0.0"', '"2.0.0"').replace('source = "self-reported"', "")

    found = [fault.section for fault in manifest.faults(broken, origin="x")]
    assert ["[metering]", "contract_version"] == found
    with pytest.raises(manifest.ManifestInvalid):
        manifest.parse(broken, origin="x")


def test_the_version_that_is_declared_is_kept_without_the_space_around_it(valid: str) -> None:
    adapter = manifest.parse(valid.replace('"1.0.0"', '"\\t1.2.3-rc.1 "'), origin="x")

    assert "1.2.3-rc.1" == adapter.contract_version


@pytest.mark.parametrize("text", ["1.0.0", "1.0.0-a", " 3.2.1+b "])
def test_a_version_is_read_whole(text: str) -> None:
    assert text.strip() == str(judgement.version(text))
