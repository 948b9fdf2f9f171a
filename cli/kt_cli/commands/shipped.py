"""`kt adapter list` and `kt adapter show`: the adapters that come with kt, and any other file as kt reads it."""

import json
from pathlib import Path
from typing import Any

import click

from kt_cli import adapter_places, output, table, terminal


@click.command()
@output.json_option
def show_shipped(*, as_json: bool) -> None:
    """List the adapters that come with kt.

    \b
    Examples:
      kt adapter list
      kt agent register bot --adapter openai-compatible
    """
    from kt_manifest.contract import capability, kinds, shipped

    system = capability.this_os()
    there = shipped.found()
    if as_json:
        rows = [_row(each, system) for each in there]
        output.document({"schema_version": 1, "os": system, "adapters": rows})
        return
    titles = (
        "Kind",
        "Name",
        "Metering",
        *(f"{word.capitalize()} here" for word in capability.CAPABILITIES),
    )
    lines = [
        (
            each.adapter.kind,
            _name(each),
            each.adapter.metering_source,
            *map(str, capability.project(each.adapter.declaration, system).values()),
        )
        for each in there
    ]
    output.result(table.render(titles, lines, width=terminal.width()))
    output.note("A template is there to be copied: it starts a program that is yours to make.")
    output.note(f"Each has a folder in {terminal.visible(str(shipped.folder()))}.")
    output.note(f"Built in, without a file: {', '.join(sorted(kinds.BUILTIN))}.")


@click.command()
@adapter_places.argument
@output.json_option
def show(adapter: str, *, as_json: bool) -> None:
    """Show what kt understands of an adapter: a shipped one by its kind, any other by its path.

    \b
    Examples:
      kt adapter show openai-compatible
      kt adapter show ./my-agent --json
    """
    from kt_manifest.contract import capability

    found, place, introduction = _found(adapter)
    system = capability.this_os()
    if as_json:
        facts = json.loads(found.to_json())
        del facts["schema_version"]
        levels = {word: str(level) for word, level in capability.project(found.declaration, system).items()}
        output.document(
            {
                "schema_version": 1,
                "path": str(place),
                "os": system,
                "capabilities_here": levels,
                "adapter": facts,
                "introduction": list(introduction),
            }
        )
        return
    output.result(table.fields(list(_told(found, place)), width=terminal.width()))
    output.result("")
    output.result(capabilities(found))
    for line in introduction:
        output.note(terminal.visible(line))


def _found(adapter: str) -> tuple[Any, Path, tuple[str, ...]]:
    from kt_manifest.contract import manifest, shipped

    if adapter_places.is_path(adapter):
        return manifest.load(Path(adapter)), Path(adapter), ()
    named = shipped.named(adapter)
    return named.adapter, named.folder, named.introduction


def _name(each: Any) -> str:
    name = each.adapter.display_name or "—"
    return f"{name} (a template)" if each.is_template else name


def _row(each: Any, system: str) -> dict[str, Any]:
    from kt_manifest.contract import capability

    adapter = each.adapter
    return {
        "kind": adapter.kind,
        "name": adapter.display_name,
        "metering_source": adapter.metering_source,
        "capabilities": {
            word: str(level) for word, level in capability.project(adapter.declaration, system).items()
        },
        "folder": str(each.folder),
        "template": each.is_template,
    }


def _told(adapter: Any, place: Path) -> Any:
    from kt_manifest.contract import described

    for number, (title, text) in enumerate(described.lines(adapter)):
        yield title, text
        if number == 1:
            yield "Where", str(place)


def capabilities(adapter: Any) -> str:
    """Return the table of what an adapter declares, on all systems."""
    from kt_manifest.contract import capability

    levels = [capability.project(adapter.declaration, system) for system in capability.SYSTEMS]
    rows = [(word, *(str(level[word]) for level in levels)) for word in capability.CAPABILITIES]
    return table.render(("Capability", *capability.SYSTEMS), rows, width=terminal.width())
