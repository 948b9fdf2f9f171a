from kt_manifest.configuration import options, value_types
from kt_manifest.configuration.options import Effect


def test_every_option_says_what_it_is_for_and_every_default_is_of_its_type() -> None:
    for option in options.OPTIONS:
        assert option.help.endswith(".")
        assert option.type.wanted
        if option.default is not None:
            assert option.default == option.type.parse(option.default)


def test_limits_and_prices_and_only_they_wait_to_be_enforced() -> None:
    waiting = {option.key for option in options.OPTIONS if option.effect is Effect.NOT_YET}

    assert waiting == {
        option.key
        for option in options.OPTIONS
        if option.key.startswith(("budget.", "cost.")) or option.key == "hooks.on_breach"
    }
    assert len(waiting) == 9


def test_what_the_engine_sets_has_no_default_of_ours() -> None:
    assert {options.BASE_URL, options.ORIGIN, options.MEMORY_DIR} == {
        option.key
        for option in options.OPTIONS
        if option.effect is Effect.BY_THE_ENGINE and option.default is None
    }


def test_a_sensitive_option_may_be_a_reference() -> None:
    assert options.SENSITIVE
    assert all(options.BY_KEY[key].type.takes_reference for key in options.SENSITIVE)


def test_a_number_is_a_number_of_something() -> None:
    numbers = [
        option for option in options.OPTIONS if option.type in (value_types.COUNT, value_types.DOLLARS)
    ]

    assert numbers
    assert all(option.unit for option in numbers)
