import pytest

from kt_manifest.contract import names


@pytest.mark.parametrize("name", ["a", "0", "a-b_c", "9lives", "x" * 64, "a--", "a__"])
def test_a_good_name_comes_back_as_it_is(name: str) -> None:
    assert name == names.check(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "A",
        "-a",
        "_a",
        "a b",
        "a\n",
        "\na",
        "a/b",
        "..",
        ".",
        "a.b",
        "é",
        "ａ",
        "a\0",
        "x" * 65,
        "x" * 1_000_000,
        "a\u0661",
    ],
    ids=range(17),
)
def test_a_bad_name_is_refused_with_the_rule(name: str) -> None:
    with pytest.raises(names.NameInvalid) as caught:
        names.check(name)

    assert (2, name) == (caught.value.exit_code, caught.value.got)
    assert "1 to 64 characters" in str(caught.value)
    assert len(str(caught.value)) < 400
    assert len(str(caught.value).splitlines()) == 1
