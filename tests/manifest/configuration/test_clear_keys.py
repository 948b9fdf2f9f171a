"""Settings that hold a key themselves, known by their names."""

import pytest

from kt_manifest.configuration import clear_keys, settings


@pytest.mark.parametrize(
    ("key", "value", "clear", "shown"),
    [
        ("metering.upstream_api_key", "sk-x", True, "****"),
        ("metering.upstream_api_key", "secret:A", False, "secret:****"),
        ("metering.upstream_api_key", "sk-${x}", True, "****"),
        ("agent.MY_API_KEY", "sk-x", True, "****"),
        ("agent.my_api_key", "sk-x", True, "****"),
        ("agent.MY_API_KEY", ["sk-x"], True, "****"),
        ("agent.MY_API_KEY", "x ${secret:A}", False, "secret:****"),
        ("agent.MY_API_KEY", "${metering.upstream_api_key}", False, "${metering.upstream_api_key}"),
        ("agent.MY_API_KEY", "sk-${model}", True, "****"),
        ("agent.MY_API_KEY", "sk-${", True, "****"),
        ("agent.MY_API_KEY", "", False, ""),
        ("agent.OTHER", "sk-x", False, "sk-x"),
        ("model", "sk-x", False, "sk-x"),
    ],
)
def test_what_is_a_key_in_the_clear_and_what_is_shown(
    key: str, value: str | list[str], clear: bool, shown: str
) -> None:
    assert clear is clear_keys.is_clear(key, value)
    assert shown == settings.shown(key, value)
    assert clear is bool(clear_keys.notice(key, value, file="config.toml", typed=True))
    assert clear is bool(clear_keys.texts({key: value}))


def test_a_mask_that_was_typed_back_is_refused() -> None:
    with pytest.raises(settings.InvalidValue, match="the mask"):
        settings.check("agent.MY_API_KEY", "****")

    assert "****" == settings.check("agent.STARS", "****")
