"""What a watcher sees while the demo runs: a live table on a terminal, calm lines elsewhere."""

from collections.abc import Sequence
from typing import Any, Protocol, Self

from kt_cli import figures, output, terminal
from kt_cli.commands.fleet import STATE_COLOURS


class View(Protocol):
    """Shown the fleet again and again."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(self, *_: object) -> None:
        """End."""

    def update(self, entries: Sequence[dict[str, Any]]) -> None:
        """Show how things are now."""


class Silent:
    """Shows nothing: for `--json`."""

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """End."""

    def update(self, entries: Sequence[dict[str, Any]]) -> None:
        """Show nothing."""


class Calm:
    """Writes a line whenever an agent has news."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """End with a blank line."""
        output.result("")

    def update(self, entries: Sequence[dict[str, Any]]) -> None:
        """Write the lines of the agents whose line has changed."""
        for entry in entries:
            line = f"  {entry['name']:<9} {entry['state']:<9} {figures.usage(entry['usage'], 'cumulative')}"
            if self._shown.get(entry["name"]) != line:
                self._shown[entry["name"]] = line
                output.result(line)


class Live:
    """A table that changes in place, with rich, which is imported only here."""

    def __init__(self, shows: dict[str, str]) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive

        self._shows = shows
        self._live = RichLive(console=Console(highlight=False), refresh_per_second=8, transient=False)

    def __enter__(self) -> Self:
        """Begin."""
        self._live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """End, and leave the last state on the screen."""
        self._live.__exit__(None, None, None)

    def update(self, entries: Sequence[dict[str, Any]]) -> None:
        """Draw the table anew."""
        from rich import box
        from rich.spinner import Spinner
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE, pad_edge=False, expand=False)
        for title in ("", "Agent", "State", "So far", "What it is"):
            table.add_column(title)
        for entry in entries:
            state = str(entry["state"])
            mark = Spinner("dots") if state in ("starting", "running") else Text("•", style="dim")
            used = Text(figures.usage(entry["usage"], "cumulative"))
            shown = Text(state, style=STATE_COLOURS.get(state, ""))
            table.add_row(
                mark, entry["name"], shown, used, Text(self._shows.get(entry["name"], ""), style="dim")
            )
        self._live.update(table)


def choose(shows: dict[str, str], *, as_json: bool) -> View:
    """Return the view that fits where standard output goes."""
    if as_json:
        return Silent()
    return Live(shows) if terminal.is_terminal() else Calm()
