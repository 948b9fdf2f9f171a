"""One declaration: what is asked is the same from both clients, and every part of it is quoted."""

import pytest

from kt_client import verbs
from kt_client.asynchronous import AsyncClient
from kt_client.blocking import Client


def test_both_clients_have_the_same_verbs() -> None:
    def names(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert names(Client) == names(AsyncClient)
    assert {"register", "start", "pause", "send", "events", "config_set", "engine_upgrade"} <= names(Client)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("bot", "bot"), ("a b/c?d&e=f#g", "a%20b%2Fc%3Fd%26e%3Df%23g"), ("ä", "%C3%A4"), ("..", ".."), ("", "")],
)
def test_text_is_quoted_for_a_path(text: str, expected: str) -> None:
    assert expected == verbs.quoted(text)


def test_a_name_that_would_lead_elsewhere_is_refused_by_the_engine(shared_client: Client) -> None:
    from kt_client.errors import WrongUse

    shared_client.engine_start()

    with pytest.raises(WrongUse):
        shared_client.show("../engine")
    with pytest.raises(WrongUse):
        shared_client.show("")
