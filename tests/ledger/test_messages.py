from kt_ledger.messages import Grant, Listener, Status

LISTENER = Listener(
    instance_id="i",
    name="n",
    port=1,
    upstream="http://u",
    grants=(Grant(run_id="r", token="secret"),),
    upstream_api_key="key",
)
STATUS = Status(
    version="1",
    pid=1,
    start_ticks=2,
    boot_id="b",
    incarnation="g",
    started_at_ns=3,
    listeners={"i": 1},
    in_flight=0,
    journal_healthy=True,
)


def test_messages_survive_the_way_and_fields_of_a_later_version_are_ignored() -> None:
    assert LISTENER == Listener.from_json({**LISTENER.to_json(), "later": 1})
    assert STATUS == Status.from_json({**STATUS.to_json(), "later": 1})


def test_a_key_is_not_shown() -> None:
    assert "key'" not in repr(LISTENER)
