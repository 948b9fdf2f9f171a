"""`kt demo`: three agents, one ledger, in twenty seconds, without a key and without a network."""

from pathlib import Path

import click

from kt_cli import output

INTRODUCTION = """\
A local provider replays recorded-shape model traffic, and three agents run
under kt's supervision: one knows nothing of it, one counts for itself, and
one does both. No key, no network; about ten seconds.
"""


@click.command()
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    help="Keep the state in this new or empty directory (an absolute path).",
)
@output.json_option
def demo(*, state_dir: Path | None, as_json: bool) -> int:
    """Watch three agents run and be metered into one ledger. No key, no network.

    \b
    Examples:
      kt demo
      kt demo --state-dir /tmp/kt-demo
      KTESIO_STATE_DIR=/tmp/kt-demo kt agent list
    """
    from kt_cli.demo import place, story

    keep_in = place.check_state_dir(state_dir) if state_dir is not None else None
    if not as_json:
        output.result(INTRODUCTION)
    outcome = story.play(keep_in=keep_in, as_json=as_json)
    if as_json:
        output.document(outcome.to_json())
        return story.exit_code(outcome)
    from kt_cli.demo import telling

    for part in (telling.ledger(outcome), telling.judgement(outcome.verdict), telling.next_steps(outcome)):
        output.result(part + "\n")
    return story.exit_code(outcome)
