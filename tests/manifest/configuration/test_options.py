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


def test_the_contracts_keys_have_the_contracts_types_and_defaults() -> None:
    count, dollars = value_types.COUNT, value_types.DOLLARS
    contract = {
        "model": (value_types.TEXT, None),
        "budget.tokens.per_run": (count, None),
        "budget.tokens.cumulative": (count, None),
        "budget.breach_action": (value_types.BREACH_ACTION, "pause"),
        "cost.rate.input": (dollars, None),
        "cost.rate.output": (dollars, None),
        "cost.rate.cached": (dollars, None),
        "budget.dollars.per_run": (dollars, None),
        "budget.dollars.cumulative": (dollars, None),
        "metering.upstream_base_url": (value_types.URL, None),
        "metering.base_url": (value_types.URL, None),
        "memory.dir": (value_types.TEXT, None),
        "acp.command": (value_types.TEXT, None),
        "acp.args": (value_types.ARGUMENTS, None),
    }

    told = {key: (options.BY_KEY[key].type, options.BY_KEY[key].default) for key in contract}

    assert contract == told
    assert ("pause", "stop", "warn") == value_types.BREACH_ACTION.choices


def test_what_gives_an_agent_more_than_the_operator_gave_is_not_an_adapters_to_decide() -> None:
    operators = {option.key for option in options.OPTIONS if not option.by_adapter}

    assert {
        "env.inherit",
        "metering.listener_auth",
        "metering.upstream_api_key",
        *(f"hooks.on_{event}" for event in ("start", "stop", "crash", "breach", "any")),
    } == operators


def test_what_can_be_counted_is_what_is_accepted() -> None:
    for option in options.OPTIONS:
        assert all(choice == option.type.parse(choice) for choice in option.type.choices)
        assert bool(option.type.choices) is (option.type.name in ("word", "switch"))
