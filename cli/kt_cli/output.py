"""Results go to standard output, notes to standard error."""

import json
from collections.abc import Callable
from typing import Any

import click

JsonFlag = Callable[[Callable[..., Any]], Callable[..., Any]]

json_option: JsonFlag = click.option(
    "--json", "as_json", is_flag=True, help="One JSON document instead of text."
)
"""The flag of every verb that has a result."""

NEXT_ABSENT = "register one: kt agent register NAME --kind command -- PROGRAM ARGUMENTS   (or: kt demo)"
"""The hint where there is no agent yet."""


def result(text: str) -> None:
    """Write one line or block of the result."""
    click.echo(text)


def line(text: str) -> None:
    """Write one line of a result that goes on, at once."""
    click.echo(text)


def document(value: Any) -> None:
    """Write a JSON document, pretty, in the order in which it was made."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def wrapped(text: str) -> str:
    """Return a sentence in lines as wide as the screen, so that no word, path or address is broken."""
    from kt_cli import table, terminal

    return "\n".join(table.sentence(text, terminal.width()))


def note(text: str) -> None:
    """Write a note for people; never part of the result."""
    click.echo(text, err=True)


def notices(answer: Any) -> None:
    """Write the engine's own notes that came with an answer (`notices`: a list of sentences)."""
    from kt_cli import terminal

    for sentence in answer.get("notices", ()) if isinstance(answer, dict) else ():
        note(f"kt: {terminal.visible(str(sentence))}")
