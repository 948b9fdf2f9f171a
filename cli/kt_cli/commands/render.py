"""`kt agent render`: what the next start of an agent would run."""

import shlex
from typing import Any

import click

from kt_cli import completing, figures, output, session, table, terminal
from kt_ledger import exit_codes

SHOWN_LINES = 200


@click.command()
@completing.name_argument
@click.option("--reveal", is_flag=True, help="Show secrets, and the token of the listener, in the clear.")
@output.json_option
def render(name: str, *, reveal: bool, as_json: bool) -> int:
    """Show what the next start would run: command, variables, files.

    Each with where it comes from. Nothing is started and nothing is changed. Of an agent that runs, it is said in what
    the next start differs. Exit code 1: the start would be refused.

    \b
    Examples:
      kt agent render bot
      kt agent render bot --json
    """
    answer = session.client_for(name).render(name, reveal=reveal)
    output.notices(answer)
    if as_json:
        output.document(answer)
    else:
        _tell(name, answer)
    return exit_codes.DONE if answer["starts"] else exit_codes.FAILED


def _tell(name: str, answer: dict[str, Any]) -> None:
    if launch := answer["launch"]:
        for block in _blocks(launch):
            output.result(block + "\n")
    if (running := answer["running"]) is not None:
        output.result(_difference(running))
    for sentence in answer["refusals"]:
        output.note(f"kt: {name} would not start: {terminal.visible(str(sentence))}")


def _blocks(launch: dict[str, Any]) -> list[str]:
    program = terminal.visible(str(launch["executable"] or figures.ABSENT))
    words = [terminal.visible(shlex.quote(word["text"])) for word in launch["argv"]]
    blocks = [f"Program: {program}\nIn:      {terminal.visible(launch['cwd'])}\nCommand: {' '.join(words)}"]
    if added := [word for word in launch["argv"] if word["source"] != "adapter"]:
        rows = [(terminal.visible(word["text"]), _origin(word)) for word in added]
        blocks.append(table.render(("Added argument", "From"), rows, width=terminal.width()))
    # As lines and not in columns: a whole configuration may stand in one, and is to be copied from here.
    lines = [f"    {one['name']}={one['value']}  ({_origin(one)})" for one in launch["env"]]
    blocks.append("\n".join(["Variables:", *map(terminal.visible, lines)]))
    if launch["folders"]:
        blocks.append(
            "Folders made in the Agent Home: " + ", ".join(map(terminal.visible, launch["folders"]))
        )
    return blocks + [_file(file) for file in launch["files"]] + [_merge(file) for file in launch["merges"]]


def _origin(entry: dict[str, Any]) -> str:
    return f"{entry['source']}: {terminal.visible(entry['key'])}" if entry["key"] else str(entry["source"])


def _file(file: dict[str, Any]) -> str:
    path = terminal.visible(file["path"])
    if file["content"] is None:
        return f"File {path}: no setting has a value for it; one that kt wrote before is removed"
    lines = file["content"].splitlines()
    shown = [f"    {terminal.visible(line)}" for line in lines[:SHOWN_LINES]]
    more = (
        [f"    ({len(lines) - SHOWN_LINES} more lines: --json has them)"] if len(lines) > SHOWN_LINES else []
    )
    return "\n".join([f"File {path} (mode {file['mode']}):", *shown, *more])


def _merge(file: dict[str, Any]) -> str:
    path = terminal.visible(file["path"])
    if not file["values"]:
        return f"File {path}: what kt put into it before is taken out"
    values = [f"    {'.'.join(one['at'])} = {one['value']}" for one in file["values"]]
    return "\n".join([f"Values put into {path} ({file['format']}):", *map(terminal.visible, values)])


def _difference(running: dict[str, Any]) -> str:
    found = running["differs"]
    if found is None:
        return f"It runs now: {running['why']}."
    if not found:
        return "It runs now, and the next start would run the same."
    named = [
        f"{one['what']} {terminal.visible(one['name'] or '')}".rstrip() + f" ({one['how']})" for one in found
    ]
    return output.wrapped("It runs now; the next start differs in: " + ", ".join(named) + ".")
