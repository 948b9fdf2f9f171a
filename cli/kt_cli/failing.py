"""How a command that failed is told: one sentence for people or, with `--json`, one document in the engine's own shape.

Standard error either way: what a script reads from standard output is a result or nothing. No traceback reaches a
user (`KT_DEBUG=1` asks for it).
"""

import errno
import json
import os
import sys
from collections.abc import Sequence

import click

from kt_cli import environment
from kt_ledger import exit_codes

FLAG = "--json"
_UNEXPECTED = "unexpected"


def wants_json(argv: Sequence[str]) -> bool:
    """Return whether a command line asks for JSON, also one that cannot be understood as a whole."""
    words = list(argv)
    return FLAG in words[: words.index("--")] if "--" in words else FLAG in words


def tell_misuse(error: click.ClickException, *, as_json: bool) -> int:
    """Tell of a command line that cannot be understood; return the exit code."""
    if as_json:
        _document(error.format_message(), code="usage", exit_code=error.exit_code)
    else:
        error.show()
    return error.exit_code


def tell(error: Exception, *, as_json: bool) -> int:
    """Tell of what went wrong, on purpose (an exception that carries an exit code) or not; return the exit code."""
    if environment.debugging():
        import traceback

        traceback.print_exception(error)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
        forget_output()
        message = "what was asked may be done, but the answer could not be written: no space left"
        return _say(message, code="no_space", exit_code=exit_codes.FAILED, as_json=as_json)
    exit_code = getattr(error, "exit_code", None)
    if isinstance(exit_code, int):
        return _say(str(error), code=exit_codes.word(error), exit_code=exit_code, as_json=as_json)
    what = str(error) or "no message"
    message = f"unexpected {type(error).__name__}: {what} (KT_DEBUG=1 shows where; please report it)"
    return _say(message, code=_UNEXPECTED, exit_code=exit_codes.FAILED, as_json=as_json)


def forget_output() -> None:
    """Let the interpreter flush what is left into nothing: the reader has gone."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


def _say(message: str, *, code: str, exit_code: int, as_json: bool) -> int:
    if as_json:
        _document(message, code=code, exit_code=exit_code)
    else:
        click.echo(f"kt: {message}", err=True)
    return exit_code


def _document(message: str, *, code: str, exit_code: int) -> None:
    facts = {"schema_version": 1, "error": {"code": code, "exit_code": exit_code, "message": message}}
    click.echo(json.dumps(facts, indent=2, ensure_ascii=False), err=True)
