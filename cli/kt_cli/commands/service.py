"""`kt engine install` and `uninstall`: the engine as a service of the user's."""

import getpass

import click

from kt_cli import environment, output, service, session


@click.command()
@click.option("--print", "print_only", is_flag=True, help="Print the file, and do nothing.")
@output.json_option
def install(*, print_only: bool, as_json: bool) -> None:
    """Have systemd, or launchd, start the engine at login and keep it.

    Writes one file, below your own folders; no root is needed. Agents run on
    when the service is stopped, restarted or taken away.

    \b
    Examples:
      kt engine install --print
      kt engine install
    """
    files = environment.state()
    what = service.of(files)
    if print_only:
        output.result(what.text.rstrip("\n"))
        return
    environment.make_state()
    client = session.client()
    before = client.engine_status()
    done = service.install(what)
    if before["running"] and not before.get("service"):
        # The service waits at the lock of the engine that runs: it takes over from it now, not some day.
        client.engine_upgrade(to_service=True)
        done.steps.append(f"handed over from the engine that ran (pid {before['pid']}) to the service")
    if service.lingers(getpass.getuser()) is False:
        done.notices.append(
            "the service ends when you log out (agents run on, and bring an engine back); to keep it: "
            "loginctl enable-linger"
        )
    _tell(done, as_json, undo="to undo: kt engine uninstall")


@click.command()
@output.json_option
def uninstall(*, as_json: bool) -> None:
    """Take the service away. Agents run on.

    \b
    Example:
      kt engine uninstall
    """
    done = service.uninstall(service.of(environment.state()))
    _tell(done, as_json, undo="any command that needs an engine starts one again")


def _tell(done: service.Done, as_json: bool, *, undo: str) -> None:
    if as_json:
        output.document({"schema_version": 1, "steps": done.steps, "notices": done.notices})
        return
    for step in done.steps:
        output.result(step)
    output.notices({"notices": done.notices})
    output.note(undo)
