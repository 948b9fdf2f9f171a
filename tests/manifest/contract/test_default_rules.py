import pytest

from kt_manifest.contract import manifest
from kt_manifest.contract.snapshot import Adapter


def _parse(valid: str, defaults: str) -> Adapter:
    return manifest.parse(f"{valid}\n[kt.defaults]\n{defaults}\n", origin="adapter.toml")


def test_what_is_declared_is_frozen_as_settings_are_stored(valid: str) -> None:
    adapter = _parse(
        valid,
        'model = "small"\n"restart.limit" = 3\nlogs.cap = "64M"\nautostart = true\n'
        'acp.args = ["-a", "b c"]\n"agent.MODE" = "quiet"\nmetering.upstream_base_url = "https://h/v1/"',
    )

    assert {
        "model": "small",
        "restart.limit": "3",
        "logs.cap": "64M",
        "autostart": "true",
        "acp.args": ["-a", "b c"],
        "agent.MODE": "quiet",
        "metering.upstream_base_url": "https://h/v1",
    } == adapter.defaults
    assert adapter == Adapter.from_json(adapter.to_json())


def test_without_any_the_snapshot_says_nothing_of_them(valid: str) -> None:
    assert {} == manifest.parse(valid, origin="x").defaults == _parse(valid, "").defaults
    assert '"defaults"' not in _parse(valid, "").to_json()


@pytest.mark.parametrize(
    ("defaults", "says"),
    [
        ('modle = "x"', 'unknown key in [kt.defaults]: got the unknown key "modle"'),
        ('modle = "x"', "did you mean model?"),
        (
            '"metering.base_url" = "http://127.0.0.1:1"',
            "got metering.base_url, wanted a key that operators set",
        ),
        ('"memory.dir" = "/x"', "got memory.dir, wanted a key that operators set"),
        ('"budget.tokens.per_run" = 5', "a key that this version acts on"),
        ('"metering.upstream_api_key" = "sk-x"', "the operator alone decides"),
        ('"metering.listener_auth" = "none"', "the operator alone decides"),
        ('"env.inherit" = "*"', "the operator alone decides"),
        ('"hooks.on_start" = "true"', "the operator alone decides"),
        ('"agent.KEY" = "secret:OPENAI_API_KEY"', "got a secret reference"),
        ('"restart.limit" = "many"', 'got "restart.limit" = "many", wanted a whole number from 1'),
        ('"restart.limit" = -3', 'got "restart.limit" = "-3"'),
        ('model = ["a"]', "an array, wanted text"),
        ('model = [["a"]]', "an array, wanted text, a number"),
        ("model = [{ a = 1 }]", "an array, wanted text, a number"),
        ('"agent.A" = "1"\n"agent.A.B" = "2"', "clashes with another"),
        ('"agent.A.B" = "2"\n"agent.A" = "1"', "clashes with another"),
        ('"agent.A" = "1"\nagent.A = "2"', "clashes with another"),
        ('"agent.A=B" = "1"', "a name with '='"),
        ('"agent.A" = "a\\u0000b"', "a NUL character"),
    ],
)
def test_what_cannot_be_a_default_is_refused(valid: str, defaults: str, says: str) -> None:
    with pytest.raises(manifest.ManifestInvalid) as refused:
        _parse(valid, defaults)

    assert "[kt.defaults]" in str(refused.value)
    assert says in str(refused.value)


def test_a_table_that_is_none_is_of_the_wrong_type(valid: str) -> None:
    with pytest.raises(manifest.ManifestInvalid, match="a table"):
        manifest.parse(f"{valid}\n[kt]\ndefaults = 3\n", origin="x")


def test_all_faults_are_told_in_the_order_of_the_table(valid: str) -> None:
    text = f'{valid}\n[kt.defaults]\nmodle = "x"\n"restart.limit" = 0\n"memory.dir" = "x"\n'

    found = [fault.got for fault in manifest.faults(text, origin="x")]

    assert [
        'the unknown key "modle"',
        '"restart.limit" = "0"',
        "memory.dir",
    ] == found
