"""Every manifest of `good/` is accepted and survives being frozen; every one of `bad/` is refused in its pinned words.

The first line of a bad one is `# expect: `, then the message, whole, in which the file is called adapter.toml.
`{tables of kt}` stands for the tables that are known below `[kt]`.
"""

from pathlib import Path

import pytest

from kt_manifest.contract import manifest, schema
from kt_manifest.contract.snapshot import Adapter

HERE = Path(__file__).parent
GOOD = sorted((HERE / "good").glob("*.toml"))
BAD = sorted((HERE / "bad").glob("*.toml"))
EXPECT = "# expect: "


def expected(path: Path) -> str:
    first = path.read_bytes().split(b"\n", 1)[0].decode()
    assert first.startswith(EXPECT)
    return first.removeprefix(EXPECT).replace("{tables of kt}", ", ".join(schema.known_keys(("kt",))))


def test_there_are_many_and_each_sort_of_fault_is_among_them() -> None:
    assert len(GOOD) >= 50 and len(BAD) >= 400
    kinds = {manifest.judge(path).faults[0].kind for path in BAD}

    of_the_contract = {"toml", "missing_section", "invalid_field", "unknown_key", "unknown_word"}
    assert of_the_contract | {"incompatible_contract"} == kinds


def test_no_two_are_the_same() -> None:
    texts = [path.read_bytes().split(b"\n", path.parent.name == "bad")[-1] for path in GOOD + BAD]

    assert len(texts) == len(set(texts))


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_one_is_accepted_and_survives_being_frozen(path: Path) -> None:
    adapter = manifest.load(path)

    assert adapter == Adapter.from_json(adapter.to_json())
    assert manifest.Judged(adapter, ()) == manifest.judge(path)


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_bad_one_is_refused_in_the_pinned_words(path: Path) -> None:
    with pytest.raises((manifest.ManifestInvalid, manifest.ContractIncompatible)) as refused:
        manifest.load(path)

    said = str(refused.value).replace(str(path), "adapter.toml")
    assert expected(path) == said
    assert 1 == refused.value.exit_code
    assert said.isprintable()
    found = manifest.judge(path)
    assert found.adapter is None
    assert str(refused.value) == str(found.faults[0])
