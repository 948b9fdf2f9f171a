"""`kt completion`: what a shell needs to complete `kt`."""

import click

SHELLS = ("bash", "zsh", "fish")
INSTRUCTION = "_KT_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print what makes a SHELL complete verbs, names of agents, keys and their values.

    \b
    Examples:
      kt completion bash > ~/.local/share/bash-completion/completions/kt
      kt completion zsh > "${fpath[1]}/_kt"
      kt completion fish > ~/.config/fish/completions/kt.fish
    """
    from click import shell_completion

    from kt_cli import completing
    from kt_cli.main import cli

    completing.prepare()
    found = shell_completion.get_completion_class(shell)
    assert found is not None
    # Not the class's own `source`: the one of bash runs bash to look at its version.
    script = shell_completion.ShellComplete.source(found(cli, {}, "kt", INSTRUCTION))
    click.echo(script, nl=False)
