"""`kt adapter`: work on an adapter, without an engine."""

from pathlib import Path
from typing import Any

import click

from kt_cli import exit_codes, output, table, terminal
from kt_cli.commands.adapter_test import test


@click.group(no_args_is_help=False, invoke_without_command=True)
@click.pass_context
def adapter(ctx: click.Context) -> None:
    """Work on an adapter.toml.

    \b
    Example:
      kt adapter validate ./my-agent
      kt adapter test ./my-agent
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


adapter.add_command(test)


@adapter.command()
@click.argument("path", type=click.Path(path_type=Path))
@output.json_option
def validate(path: Path, *, as_json: bool) -> int:
    """Say all that is wrong with an adapter.toml, or that nothing is.

    PATH is the file, or the folder that holds it. The first fault is the one
    that `kt agent register` would name.

    \b
    Examples:
      kt adapter validate ./my-agent
      kt adapter validate adapter.toml --json
    """
    from kt_manifest.contract import manifest

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
        "section": getattr(fault, "section", "contract_version"),
        "kind": getattr(fault, "kind", "incompatible_contract"),
        "got": fault.got,
        "wanted": fault.wanted,
        "do": fault.do,
        "message": str(fault),
    }


def _tell(path: Path, found: Any) -> None:
    if found.adapter is None:
        for fault in found.faults:
            output.note(f"kt: {terminal.visible(str(fault))}")
        return
    from kt_manifest.contract import capability

    output.result(f"{terminal.visible(str(path))} is valid: kind {found.adapter.kind}.")
    rows = [
        (
            word,
            *(
                str(capability.project(found.adapter.declaration, system)[word])
                for system in capability.SYSTEMS
            ),
        )
        for word in capability.project(found.adapter.declaration, capability.LINUX)
    ]
    output.result(table.render(("Capability", *capability.SYSTEMS), rows, width=terminal.width()))
