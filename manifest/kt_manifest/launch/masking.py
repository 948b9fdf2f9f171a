"""A launch as people may see it: rendered once more, from values in which every secret is masked already.

Law: nothing is looked for in a rendered text. Each format spells a character in its own ways, and a secret that is
masked before it is written has none of them. Pure.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from kt_manifest.configuration import options, secrets
from kt_manifest.configuration.value_types import Value
from kt_manifest.contract.snapshot import Adapter
from kt_manifest.launch import render
from kt_manifest.launch.provenance import Source
from kt_manifest.launch.render import Launch, RunFacts

Mask = Callable[[str], str]


def launch(
    plain: Launch, adapter: Adapter, values: Mapping[str, Value], run: RunFacts, hidden: Iterable[str]
) -> Launch | None:
    """Return a launch with `hidden` masked wherever it is part of a setting, part for part the same otherwise.

    Inherited variables are as they are: nothing has written them in a spelling of its own. None where a masked value
    cannot be rendered: a number that is a secret is none any more.
    """
    mask = _mask({*hidden, *run.secrets.values()})
    try:
        shown = render.preview(adapter, _masked(values, mask), _facts(run, mask))
    except Exception as error:
        if getattr(error, "exit_code", None) is None:
            raise
        return None  # a refusal, by name: whoever shows it shows none of the values
    if _parts(shown) != _parts(plain):
        return None
    # Whether a variable is there at all may depend on its value, such as one that equals the provider's key.
    told = shown.env
    variables = tuple(
        one if one.source is Source.INHERITED else replace(one, value=told.get(one.name, secrets.MASK))
        for one in plain.variables
    )
    return replace(shown, variables=variables)


def _parts(one: Launch) -> tuple[object, ...]:
    files = tuple((file.path, bool(file.content)) for file in one.files)
    merges = tuple((file.path, tuple(at for at, _ in file.edits)) for file in one.merges)
    return len(one.arguments), files, merges


def _mask(hidden: Iterable[str]) -> Mask:
    # The longest first, since one may be part of another.
    texts = sorted(filter(None, set(hidden)), key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, texts)))
    return lambda text: pattern.sub(secrets.MASK, text) if texts else text


def _masked(values: Mapping[str, Value], mask: Mask) -> dict[str, Value]:
    masked: dict[str, Value] = {}
    for key, value in values.items():
        if key == options.UPSTREAM_API_KEY:
            masked[key] = value  # it is rendered nowhere, and what equals it is left out
        else:
            masked[key] = mask(value) if isinstance(value, str) else [mask(item) for item in value]
    return masked


def _facts(run: RunFacts, mask: Mask) -> RunFacts:
    return replace(
        run,
        metering_base_url=_address(run.metering_base_url, run),
        metering_origin=_address(run.metering_origin, run),
        placeholder_key=None if run.placeholder_key is None else mask(run.placeholder_key),
        written=_masked(run.written, mask),
        secrets=dict.fromkeys(run.secrets, secrets.MASK),
    )


def _address(url: str | None, run: RunFacts) -> str | None:
    """Return a listener's address without its token; in its path, the provider's, a secret of that may stand."""
    return None if url is None else _mask(run.secrets.values())(str(secrets.mask_address(url)))
