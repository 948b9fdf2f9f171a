"""The patterns that editors get say what the judges say, as far as a pattern can."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kt_manifest import words
from kt_manifest.contract import judgement, names, patterns, snapshot
from kt_manifest.launch import native_path, readiness

ODD = st.text(
    alphabet=st.sampled_from('aZ09._-=+ /\\:~\n\t\0\x1b\x7f\x85\u202e\u00a0é"$v{}CONFIGconfigtoml'),
    max_size=12,
)
TEXTS = st.one_of(
    ODD,
    st.text(st.characters(codec="utf-8"), max_size=6),
    st.sampled_from(
        [
            *(
                "config.toml",
                "CONFIG.toml",
                "a/config.toml",
                ".kt.new",
                "a/.kt.new",
                ".kt.new/a",
                "config.toml/a",
                "a/.kt.new/b",
                "effective-config.json",
                "E\ufb00ective-config.j\u017fon",
                "con\ufb01g.toml",
                "memory",
                "Memory/a",
                "a/memory",
                ".kt.merged.json",
                ".\u212at.new",
            ),
            *("a/../b", "..", "a/.", "C:\\x", "c:x", "\\\\x", "/", "C:/"),
            *("1.0.0-rc.1+b.5", "1.0.0-01", "${A_1}"),
        ]
    ),
    st.just(" 1.2.3\n"),
)


def test_each_pattern_is_a_pattern_for_a_whole_text() -> None:
    found = {name: value for name, value in vars(patterns).items() if name.isupper() and name[0] != "_"}

    assert len(found) >= 10
    assert all(value[0] == "^" and value[-1] == "$" and re.compile(value) for value in found.values())


def fits(pattern: str, text: str) -> bool:
    # ECMA's `$` is the end of the text alone.
    return re.search(pattern[:-1] + r"\Z", text) is not None


@settings(max_examples=1500, deadline=None)
@given(TEXTS)
def test_a_pattern_and_its_judge_agree(text: str) -> None:
    version = judgement.version(text)

    assert fits(patterns.KIND, text) == names.follows_the_pattern(text)
    assert fits(patterns.PROGRAM, text) == (snapshot.fault_in_exec(text) is None)
    assert fits(patterns.CARRIED, text) == (words.fault_in_value(text) is None)
    assert fits(patterns.FLAG, text) == (bool(text) and words.fault_in_value(text) is None)
    assert fits(patterns.VARIABLE_NAME, text) == (words.fault_in_environment_name(text) is None)
    assert fits(patterns.SHOWN_NAME, text) == (words.fault_in_shown_name(text) is None)
    assert fits(patterns.NATIVE_KEY, text) == (
        bool(text) and all(text.split(".")) and words.fault_in_shown_name(text) is None
    )
    assert fits(patterns.HOME_PATH, text) == (native_path.fault(text) is None)
    assert fits(patterns.PORT_VARIABLE, text) == (readiness.VARIABLE.fullmatch(text) is not None)
    assert fits(patterns.CONTRACT_VERSION, text) == (version is not None and version.major == 1)


@pytest.mark.parametrize("url", ["http://127.0.0.1:4096/m", "HTTP://LOCALHOST:1", "http://[::1]:80/?a=b"])
def test_an_address_that_is_accepted_has_the_form(url: str) -> None:
    document = {"kt": {"send": {"url": url}}}

    assert [] == [fault for fault in judgement.faults(document) if fault.section == "[kt.send]"]
    assert fits(patterns.LOOPBACK_URL, url) and fits(patterns.URL_WITH_VARIABLES, url)
