"""`kt adapter new` and `kt adapter schema`: what an author begins with."""

import re
import shlex
from pathlib import Path

import click

from kt_cli import output, terminal


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--kind", help="What the adapter is called; the folder's own name unless said.")
@click.option("--exec", "program", help="The program that starts the agent; the kind unless said.")
@click.option("--observed", is_flag=True, help="The engine meters its traffic.")
@click.option("--self-reported", is_flag=True, help="It counts for itself, or a shim does (default).")
def new(folder: Path, *, kind: str | None, program: str | None, observed: bool, self_reported: bool) -> None:
    """Write a new adapter.toml into DIR, with a word on each line.

    It is valid as it is written. A file that is there already is never replaced.

    \b
    Examples:
      kt adapter new ./my-agent
      kt adapter new ./adapters/bot --kind bot --observed --exec /usr/bin/bot
    """
    from kt_manifest.contract import blank

    if observed and self_reported:
        raise click.UsageError("got --observed and --self-reported, wanted one of them: one source counts")
    named = kind if kind is not None else _kind_of(folder)
    content = blank.text(
        kind=named, source="engine-observed" if observed else "self-reported", program=program or named
    )
    file = blank.write(folder, content)
    shown = terminal.visible(str(file))
    output.result(f"Wrote {shown} (kind {named}).")
    output.note(f"Next: edit it, then kt adapter validate {terminal.visible(shlex.quote(str(file)))}")


def _kind_of(folder: Path) -> str:
    name = re.sub(r"[^a-z0-9_-]+", "-", folder.resolve().name.lower()).strip("-_")
    if not name:
        raise click.UsageError(
            f"got the folder {str(folder)!r}, whose name gives no kind; wanted --kind KIND"
        )
    return name


@click.command()
def schema() -> None:
    """Print the JSON Schema of adapter.toml, for editors.

    An editor with TOML support (taplo; "Even Better TOML" in VS Code) completes
    and checks a file whose first line is: #:schema ./adapter.schema.json

    \b
    Example:
      kt adapter schema > adapter.schema.json
    """
    from kt_manifest.contract import json_schema

    output.document(json_schema.document())
