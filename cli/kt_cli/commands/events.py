"""`kt events`: what happened to agents, engine and gateway, in one order."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import click

from kt_cli import environment, figures, following, output, session, terminal
from kt_client.errors import KtError

DEFAULT_LIMIT = 20
LATEST_LIMIT = 1000
MOST = 1_000_000
LONGEST_REST = 100


@click.command()
@click.option("--follow", "-f", "follow", is_flag=True, help="Go on with what happens, until Ctrl-C.")
@click.option(
    "--after", type=click.IntRange(0), metavar="N", help="Only what has a higher number, oldest first."
)
@click.option("--agent", "name", metavar="NAME", help="Only of this agent (of a removed one: its id).")
@click.option(
    "--limit",
    type=click.IntRange(0, MOST),
    help=f"At most so many: the latest ({DEFAULT_LIMIT} where nothing is said), or with --after the first.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def events(*, follow: bool, after: int | None, name: str | None, limit: int | None, as_json: bool) -> None:
    """Tell what happened: changes of state, usage, registrations, settings, deaths.

    Each event has a number, and is told once: a follower goes on behind the last one when the engine is replaced. It
    ends when the engine is stopped on purpose.

    \b
    Examples:
      kt events
      kt events --follow --agent bot
      kt events --after 1200 --json
    """
    if session.is_unused(environment.state()):
        output.note("kt: nothing has happened here yet.")
        return
    if after is None and limit is not None and limit > LATEST_LIMIT:
        raise click.BadParameter(
            f"got {limit}, wanted at most {LATEST_LIMIT}, or --after N", param_hint="--limit"
        )
    if follow and after is not None and limit is not None:
        raise click.BadParameter("got --limit with --follow and --after, wanted one of the first two")
    for event in _events(follow=follow, after=after, name=name, limit=limit):
        output.line(json.dumps(event, ensure_ascii=False) if as_json else _text(event))
    if follow:
        output.note("kt: the engine was stopped; go on with `kt events --follow --after N`.")


def _events(
    *, follow: bool, after: int | None, name: str | None, limit: int | None
) -> Iterator[dict[str, Any]]:
    """Yield events; `seen` is what the next engine is asked to go on behind."""
    seen = after
    about = {"instance": name} if name else {}

    def target() -> str:
        query: dict[str, Any] = {"follow": int(follow), **about}
        if seen is not None:
            query["after"] = seen
        if limit is not None and (seen is None or not follow):
            query["limit"] = limit
        elif seen is None:
            query["limit"] = DEFAULT_LIMIT
        return f"/v1/events?{urlencode(query)}"

    source = following.everything(target) if follow else session.lines(target())
    for event in source:
        seq = event.get("seq")
        if not isinstance(seq, int) or (seen is not None and seq <= seen):
            raise KtError(
                f"got event {seq!r} after {seen!r}, wanted numbers that go up; please report it", exit_code=1
            )
        seen = seq
        yield event


def _text(event: dict[str, Any]) -> str:
    who = terminal.visible(str(event.get("instance") or event.get("instance_id") or "-"))
    rest = terminal.visible(_said(event))
    return f"{event['seq']:>6}  {event['at']}  {who}  {event['kind']}{rest and '  '}{rest}"


def _said(event: dict[str, Any]) -> str:
    kind = event["kind"]
    if kind == "transition":
        cause = event.get("cause") or {}
        plain = ("detail", "command", "why")  # these say by themselves what they are
        facts = [
            str(value) if key in plain else f"{key} {value}" for key, value in cause.items() if key != "kind"
        ]
        words = f"{cause.get('kind', 'unknown')}{': ' if facts else ''}{', '.join(facts)}"
        return f"{event['prior_state']} -> {event['new_state']} ({words})"
    if kind == "usage_update":
        return _usage(event)
    told = ("schema_version", "seq", "kind", "instance", "instance_id", "at")
    return "  ".join(
        f"{name}={_value(value)}"
        for name, value in event.items()
        if name not in told and value not in (None, "")
    )


def _usage(event: dict[str, Any]) -> str:
    added = event["added"]
    unknown = f", {added['unmeasured_calls']} not measured" if added["unmeasured_calls"] > 0 else ""
    tokens = f"{figures.grouped(added['input_tokens'])} in, {figures.grouped(added['output_tokens'])} out"
    return f"+{added['events']} {event['event']['metering_source']}: {tokens}{unknown}"


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_REST else f"{text[:LONGEST_REST]}…"
