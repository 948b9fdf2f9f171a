"""What a start says of its caller's variables: one that hides a kept secret, one that is named and not there.

Names alone are told, never a value.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from kt_manifest.configuration import options, secrets_file
from kt_manifest.configuration.value_types import Value
from kt_manifest.contract.snapshot import ENGINE_OBSERVED, Adapter
from kt_manifest.launch import inheritance


def overriding(used: Mapping[str, str], environment: Mapping[str, str], file: Path) -> list[str]:
    """Tell of each secret of a start that its caller's variable gives, though another value is kept in `file`.

    The keyring is not asked: that takes a process, and a variable makes it unnecessary.

    Args:
        used: what stands for each name in this start.
    """
    from_caller = sorted(name for name, value in used.items() if environment.get(name) == value)
    if not from_caller:
        return []
    try:
        kept = secrets_file.entries(file)
    except secrets_file.SecretsFileUnusable:
        return []  # told where it is needed; here the variable is enough
    return [
        f"secret:{name} is what the variable {name} of this shell says, not the other value that {file.name} has: a "
        f"variable wins; to use the kept one: unset {name}"
        for name in from_caller
        if kept.get(name) not in (None, used[name])
    ]


def absent(settings: Mapping[str, Value], environment: Mapping[str, str]) -> list[str]:
    """Tell of the variables that `env.inherit` names in full, which are not there and which no setting gives."""
    patterns: Iterable[str] = settings.get(options.ENV_INHERIT) or ()
    listed = patterns.split() if isinstance(patterns, str) else patterns
    return [
        f"{options.ENV_INHERIT} names {name}, which is not set here: the agent starts without it"
        for name in sorted(inheritance.named_in_full(listed))
        if name not in environment and options.PASS_THROUGH + name not in settings
    ]


def left_out(
    name: str, adapter: Adapter, values: Mapping[str, Value], environment: Mapping[str, str]
) -> list[str]:
    """Tell of the keys that the caller has and the agent does not get."""
    remarks = keys_left_out(name, adapter, values)
    return [remark for variable, remark in remarks.items() if variable in environment]


def keys_left_out(name: str, adapter: Adapter, values: Mapping[str, Value]) -> dict[str, str]:
    """Return what to say of variables that an agent whose key nobody else puts in may miss, if its caller has them."""
    if adapter.metering_source != ENGINE_OBSERVED or options.UPSTREAM_API_KEY in values:
        return {}
    reaches = inheritance.by_setting(dict.fromkeys(_PROVIDER_KEYS, ""), values.get(options.ENV_INHERIT))
    return {
        variable: f"{variable} of the caller's environment does not reach the agent, as no provider's key does; to "
        f"give it to the gateway: kt agent config set {name} {options.UPSTREAM_API_KEY} secret:{variable}; to the "
        f'agent itself: kt agent config set {name} {options.ENV_INHERIT} "{inheritance.DEFAULTS} {variable}"'
        for variable in _PROVIDER_KEYS
        if variable not in reaches and options.PASS_THROUGH + variable not in values
    }


_PROVIDER_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "OPENAI_API_KEY")
"""The variables from which agents most often take a key; others are left out without a word."""
