"""One declaration: what is asked is the same from both clients, and every part of it is quoted."""

import pytest

from kt_client.asynchronous import AsyncClient
from kt_client.blocking import Client


def test_both_clients_have_the_same_verbs() -> None:
    def names(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert names(Client) == names(AsyncClient)
    assert {"register", "start", "pause", "send", "events", "config_set", "engine_upgrade"} <= names(Client)


def test_a_name_that_would_lead_elsewhere_is_refused_by_the_engine(shared_client: Client) -> None:
    from kt_client.errors import WrongUse

    shared_client.engine_start()

    with pytest.raises(WrongUse):
        shared_client.show("../engine")
    with pytest.raises(WrongUse):
        shared_client.show("")
