import pytest

from kt_client import targets
from kt_client.errors import WrongUse


@pytest.mark.parametrize(
    ("text", "expected"),
    [("bot", "bot"), ("a b/c?d&e=f#g", "a%20b%2Fc%3Fd%26e%3Df%23g"), ("ä", "%C3%A4"), ("..", ".."), ("", "")],
)
def test_text_is_quoted_for_a_path(text: str, expected: str) -> None:
    assert expected == targets.quoted(text)


def test_a_query_has_what_is_given() -> None:
    assert ("", "?key=a%26b&reveal=1") == (targets.query(key=None), targets.query(key="a&b", reveal="1"))


def test_a_question_about_an_agent_names_it() -> None:
    request = targets.about("a/b", "GET", "/usage")

    assert ("/v1/agents/a%2Fb/usage", "a/b") == (request.target, request.about)
    with pytest.raises(WrongUse):
        targets.about("", "GET")
