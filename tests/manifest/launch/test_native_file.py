import tomllib

from hypothesis import given, settings
from hypothesis import strategies as st

from kt_manifest.contract import config_rules
from kt_manifest.launch import native_file

SEGMENTS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="."), min_size=1, max_size=5
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def test_keys_are_nested_and_values_are_text() -> None:
    text = native_file.toml(
        [("llm.model", "5"), ("top", 'a"\n'), ("llm.args", ["x", "y"]), ("llm.sub.key", "true")]
    )

    assert tomllib.loads(text) == {
        "llm": {"model": "5", "args": ["x", "y"], "sub": {"key": "true"}},
        "top": 'a"\n',
    }


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.lists(SEGMENTS, min_size=1, max_size=3).map(".".join),
        TEXTS | st.lists(TEXTS, max_size=3),
        max_size=6,
    )
)
def test_whatever_the_keys_and_values_it_reads_back_the_same(pairs: dict[str, str | list[str]]) -> None:
    apart = {
        key: value
        for key, value in pairs.items()
        if not any(config_rules.nests(key, other, ".") for other in pairs)
    }

    document = tomllib.loads(native_file.toml(apart.items()))

    for key, value in apart.items():
        node = document
        *parents, last = key.split(".")
        for name in parents:
            node = node[name]
        assert value == node[last]
