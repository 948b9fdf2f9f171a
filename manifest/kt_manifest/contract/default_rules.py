"""The rules of `[kt.defaults]`: what an adapter may say its kind of agent is set to, unless somebody sets it otherwise.

The table is read as a layer is: a quoted key with dots and a path through tables mean the same. It can hold every
setting but those with which an adapter would help itself to more than the operator gave.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kt_manifest import words
from kt_manifest.configuration import layer_text, layers, options, secrets, settings
from kt_manifest.configuration.value_types import Value
from kt_manifest.contract.findings import Draft, Finding

SECTION = "[kt.defaults]"


def judge(draft: Draft) -> Iterator[Finding]:
    """Give a finding for every default that cannot be one, in the order of the table."""
    seen: set[str] = set()
    tables: set[str] = set()
    for parts, raw in layer_text.walk(draft.table("kt", "defaults")):
        key = ".".join(parts)
        above = layers.ancestors(key)
        if clash := next((name for name in (key, *above) if name in seen), key if key in tables else None):
            got = f"{words.shown(key)}, which clashes with another {words.shown(clash)}"
            yield Finding(
                SECTION, "invalid_field", got, "each key once, none below another", "remove one of them"
            )
        elif (finding := _fault(key, raw)) is not None:
            yield finding
        seen.add(key)
        tables.update(above)


def declared(table: Mapping[str, Any] | None) -> dict[str, Value]:
    """Return the defaults of a table without faults."""
    found: dict[str, Value] = {}
    for parts, raw in layer_text.walk(dict(table or {})):
        key, value = ".".join(parts), layer_text.value(raw)
        assert value is not None, "judged before"
        found[key] = settings.check_stored(key, value)
    return found


def _fault(key: str, raw: object) -> Finding | None:
    value = layer_text.value(raw)
    if value is None:
        got = f"{words.shown(key)} = {words.shown(raw)}"
        return Finding(
            SECTION, "invalid_field", got, "text, a number, a boolean or an array of them", "correct it"
        )
    option = options.BY_KEY.get(key)
    if option is not None and not option.by_adapter:
        wanted = "a setting that an adapter may decide"
        return Finding(
            SECTION, "invalid_field", key, wanted, "remove it: the operator alone decides this one"
        )
    if any(secrets.is_reference(text) for text in ([value] if isinstance(value, str) else value)):
        got = f"a secret reference for {words.shown(key)}"
        do = "remove it: the operator alone decides who gets a secret"
        return Finding(SECTION, "invalid_field", got, "a value", do)
    try:
        settings.check_stored(key, value)
    except settings.UnknownKey as error:
        return Finding(SECTION, "unknown_key", f"the unknown key {error.got}", error.wanted, error.do)
    except (settings.ReservedKey, settings.NotEnforcedYet) as error:
        return Finding(SECTION, "invalid_field", error.got, error.wanted, error.do)
    except settings.InvalidValue as error:
        got = f"{words.shown(key)} = {error.got}"
        return Finding(SECTION, "invalid_field", got, error.wanted, error.do)
    return None
