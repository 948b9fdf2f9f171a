"""`kt adapter`: work on an adapter, without an engine."""

from pathlib import Path
from typing import Any

import click

from kt_cli import adapter_places, output, terminal
from kt_cli.lazy_group import LazyGroup
from kt_ledger import exit_codes

VERBS = {
    "list": "kt_cli.commands.shipped:show_shipped",
    "show": "kt_cli.commands.shipped:show",
    "new": "kt_cli.commands.authoring:new",
    "validate": "kt_cli.commands.adapter:validate",
    "test": "kt_cli.commands.adapter_test:test",
    "schema": "kt_cli.commands.authoring:schema",
}


@click.group(cls=LazyGroup, sources=VERBS, no_args_is_help=False, invoke_without_command=True)
@click.pass_context
def adapter(ctx: click.Context) -> None:
    """Look at adapters, write your own, and prove it. Works without an engine of yours.

    \b
    Example:
      kt adapter list
      kt adapter new ./my-agent --observed
      kt adapter validate ./my-agent
      kt adapter test ./my-agent
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@click.command()
@adapter_places.argument
@output.json_option
def validate(adapter: str, *, as_json: bool) -> int:
    """Say all that is wrong with an adapter.toml, or that nothing is.

    PATH is the file, or the folder that holds it; KIND an adapter that comes
    with kt. The first fault is the one
    that `kt agent register` would name. The line is that of the key, or of its
    section where the file has it.

    \b
    Examples:
      kt adapter validate ./my-agent
      kt adapter validate adapter.toml --json
    """
    from kt_manifest.contract import manifest

    path = adapter_places.located(adapter)
    found = manifest.judge(path)
    if as_json:
        output.document(_document(path, found))
    else:
        _tell(path, found)
    return exit_codes.DONE if found.adapter is not None else exit_codes.FAILED


def _document(path: Path, found: Any) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "path": str(path),
        "valid": found.adapter is not None,
        "kind": found.adapter.kind if found.adapter is not None else None,
        "faults": [_fault(fault) for fault in found.faults],
    }


def _fault(fault: Any) -> dict[str, Any]:
    return {
        "section": fault.section,
        "kind": fault.kind,
        "line": fault.line,
        "got": fault.got,
        "wanted": fault.wanted,
        "do": fault.do,
        "message": str(fault),
    }


def _tell(path: Path, found: Any) -> None:
    if found.adapter is None:
        for fault in found.faults:
            where = "" if fault.line is None else f" (line {fault.line})"
            output.note(f"kt: {terminal.visible(str(fault))}{where}")
        return
    from kt_cli.commands import shipped

    output.result(f"{terminal.visible(str(path))} is valid: kind {found.adapter.kind}.")
    output.result(shipped.capabilities(found.adapter))
