"""`kt adapter test`: the conformance kit, told to people and to programs."""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from kt_cli import adapter_places, completing, output, table, terminal
from kt_ledger import exit_codes

if TYPE_CHECKING:
    from kt_conformance.report import Report, Result

_SHOWN = {"pass": ("pass", "green"), "fail": ("FAIL", "red"), "not_applicable": ("not applicable", "dim")}


@click.command(name="test")
@adapter_places.argument
@click.option(
    "--section",
    "sections",
    multiple=True,
    metavar="NAME",
    shell_complete=completing.sections,
    help="Only this section; may be repeated.",
)
@click.option(
    "--exec", "program", metavar="PROGRAM", help="Start this in the place of the adapter's program."
)
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="WORD",
    help="Give it this before the adapter's own arguments.",
)
@output.json_option
def test(
    adapter: str, *, sections: Sequence[str], program: str | None, arguments: Sequence[str], as_json: bool
) -> int:
    """Prove an adapter: drive its agent through a real engine and gateway, section by section.

    PATH is the adapter.toml, or the folder that holds it; KIND an adapter that
    comes with kt. Everything happens in a state directory of its own, with a
    model provider on this machine, and nothing of it is left. Takes about a
    minute.

    \b
    Examples:
      kt adapter test ./my-agent
      kt adapter test ./my-agent --section pause --section lifecycle
      kt adapter test ./my-agent --exec python3 --arg "$PWD/stand_in.py" --json
    """
    from kt_conformance import kit

    path = adapter_places.located(adapter)
    begins, ends = _progress(as_json)
    with _ended_by_signals():
        report = kit.run(
            path, sections=sections, program=program, arguments=arguments, begins=begins, ends=ends
        )
    if as_json:
        output.document(report.document())
    else:
        _tell(report)
    return exit_codes.DONE if report.passed else exit_codes.FAILED


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Have a terminal that closes, and a polite kill, end a run as Ctrl-C does: after everything is cleaned up."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    names = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(name, interrupt) for name in names]
    try:
        yield
    finally:
        for name, handler in zip(names, before, strict=True):
            signal.signal(name, handler)


def _progress(as_json: bool) -> tuple[Callable[[str], None], Callable[["Result"], None]]:
    def begins(name: str) -> None:
        output.note(f"{name} ...")

    def ends(result: "Result") -> None:
        output.note(f"{result.section}: {_SHOWN[result.status][0]} ({result.duration_s:.1f} s)")

    quiet = as_json and not terminal.is_terminal()
    return (lambda _: None, lambda _: None) if quiet else (begins, ends)


def _tell(report: "Report") -> None:
    rows = [_row(result) for result in report.sections]
    output.result(table.render(("Section", "Result", "Driven", "Seconds"), rows, width=terminal.width()))
    for reason, sections in _reasons(report).items():
        output.result("")
        output.result(output.wrapped(f"{', '.join(sections)}: {terminal.visible(reason)}"))
    for result in report.sections:
        for sentence in result.warnings:
            output.note(f"kt: {result.section}: {terminal.visible(sentence)}")
    if report.stand_in:
        program = terminal.visible(" ".join(report.stand_in))
        output.note(f"kt: this tested a stand-in ({program}), not the adapter's own program")
    output.result("")
    output.result(_verdict(report))


def _verdict(report: "Report") -> str:
    kind, ran = report.adapter_kind or "this adapter", len(report.sections)
    of = f"contract {report.contract_version}"
    if not report.passed:
        failed = f"{kind} fails {len(report.failures)} of {ran} sections ({of})."
        return failed if report.complete else f"{failed} Only {ran} of {report.of} were run."
    if not report.complete:
        return f"{kind} fails nothing in {ran} of {report.of} sections ({of}); the others were not run."
    return f"{kind} holds what it declares ({of})."


def _row(result: "Result") -> tuple[str | table.Cell, ...]:
    word, colour = _SHOWN[result.status]
    return (result.section, table.Cell(word, colour), result.driven_by or "—", f"{result.duration_s:.1f}")


def _reasons(report: "Report") -> dict[str, list[str]]:
    """Return why sections failed or do not apply, each reason once, with the sections that it holds for."""
    found: dict[str, list[str]] = {}
    for result in report.sections:
        if result.reason:
            found.setdefault(result.reason, []).append(result.section)
    return found
