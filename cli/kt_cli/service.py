"""Puts the engine under the care of the user's service manager, and takes it out again. Starts processes of others'.

Never a surprise: every step that was taken is told, with what undoes it. What fails is told with what is there by then.
"""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from kt_cli import environment, service_files
from kt_client import ignition
from kt_client.errors import KtError
from kt_ledger import exit_codes
from kt_ledger.layout import StateLayout

TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Service:
    """One engine's service: the file, and the words that start it, end it and read it again."""

    path: Path
    text: str
    check: tuple[str, ...]
    enable: tuple[tuple[str, ...], ...]
    disable: tuple[tuple[str, ...], ...]
    forget: tuple[tuple[str, ...], ...]


@dataclass(slots=True)
class Done:
    """What was done, and what people should know."""

    steps: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def of(files: StateLayout, *, platform: str = sys.platform) -> Service:
    """Return the service of this state directory on this system.

    Raises:
        KtError: exit 5, where kt knows no service manager of this system.
    """
    if platform.startswith("linux"):
        return _systemd(files)
    if platform == "darwin":
        return _launchd(files)
    raise KtError(
        f"no service manager is known on {platform}: got neither systemd nor launchd, wanted one of them; "
        "run `kt engine run` under your own",
        exit_code=exit_codes.UNSUPPORTED,
        code="unsupported",
    )


def install(service: Service) -> Done:
    """Write the file and have the manager start the engine, now and at each login.

    Raises:
        KtError: exit 1, where the manager refuses the file (nothing is left) or does not take it (the file is there).
    """
    done = Done()
    _check(service)
    service.path.parent.mkdir(parents=True, exist_ok=True)
    fresh = service.path.with_name(f".{service.path.name}.new")
    fresh.write_text(service.text)
    fresh.replace(service.path)
    done.steps.append(f"wrote {service.path}")
    for command in service.enable:
        _run(command, undo=f"the file {service.path} is there; `kt engine uninstall` takes it away")
        done.steps.append(f"ran {' '.join(command)}")
    return done


def uninstall(service: Service) -> Done:
    """Have the manager end the engine and forget it; agents run on.

    Raises:
        KtError: exit 3, where nothing is installed; exit 1, where the file cannot be removed.
    """
    if not service.path.exists():
        raise KtError(
            f"nothing to uninstall: got no {service.path}, wanted what `kt engine install` writes",
            exit_code=exit_codes.NOT_FOUND,
            code="not_installed",
        )
    done = Done()
    for command in service.disable:
        try:
            _run(command, undo="")
            done.steps.append(f"ran {' '.join(command)}")
        except KtError as failure:
            done.notices.append(
                str(failure)
            )  # a manager that is away runs nothing: the file goes all the same
    service.path.unlink()
    done.steps.append(f"removed {service.path}")
    for command in service.forget:
        try:
            _run(command, undo="")
            done.steps.append(f"ran {' '.join(command)}")
        except KtError as failure:
            done.notices.append(str(failure))
    return done


def lingers(user: str) -> bool | None:
    """Tell whether the user's services run while nobody is logged in (loginctl(1)); None where that is not known."""
    folder = Path("/var/lib/systemd/linger")
    if not Path("/run/systemd/system").is_dir():
        return None
    return (folder / user).exists()


def _systemd(files: StateLayout) -> Service:
    name = f"{service_files.NAME}{service_files.suffix(files.root, environment.usual_state_dir())}.service"
    path = environment.configuration_home() / "systemd" / "user" / name
    command = [*_command(files), "--service"]
    text = service_files.systemd_unit(command, environment.for_a_service("systemd"), state=files.root)
    manager = ("systemctl", "--user")
    return Service(
        path,
        text,
        check=("systemd-analyze", "--user", "verify"),
        enable=((*manager, "daemon-reload"), (*manager, "enable", "--now", name)),
        disable=((*manager, "disable", "--now", name),),
        forget=((*manager, "daemon-reload"),),
    )


def _launchd(files: StateLayout) -> Service:
    label = f"{service_files.LABEL}{service_files.suffix(files.root, environment.usual_state_dir())}"
    path = Path.home() / "Library" / "LaunchAgents" / f"{label}.plist"
    text = service_files.launchd_agent(
        [*_command(files), "--service"],
        environment.for_a_service("launchd"),
        label=label,
        log=files.engine_log,
    )
    domain = f"gui/{os.getuid()}"
    return Service(
        path,
        text,
        check=("plutil", "-lint"),
        enable=(("launchctl", "bootstrap", domain, str(path)),),
        disable=(("launchctl", "bootout", f"{domain}/{label}"),),
        forget=(),
    )


def _command(files: StateLayout) -> list[str]:
    return [*ignition.command(files), "--foreground"]


def _check(service: Service) -> None:
    """Have the manager's own tool judge the file, where there is one, before anything is written in its place."""
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / service.path.name
        draft.write_text(service.text)
        variables = environment.caller()
        variables.setdefault("XDG_RUNTIME_DIR", folder)
        try:
            done = subprocess.run(
                [*service.check, str(draft)],
                capture_output=True,
                text=True,
                errors="replace",
                env=variables,
                timeout=TIMEOUT_S,
                check=False,
            )
        except (FileNotFoundError, PermissionError, subprocess.TimeoutExpired):
            return
    if done.returncode:
        raise KtError(
            f"the service file is not accepted: got {(done.stderr or done.stdout).strip()} from "
            f"`{' '.join(service.check)}`, wanted no complaint; `kt engine install --print` shows the file",
            exit_code=exit_codes.FAILED,
            code="service_invalid",
        )


def _run(command: tuple[str, ...], *, undo: str) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False
        )
        got = (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
        failed = done.returncode != 0
    except (OSError, subprocess.TimeoutExpired) as error:
        got, failed = str(error), True
    if failed:
        raise KtError(
            f"`{' '.join(command)}` failed: got {got}, wanted the service manager of a logged-in user"
            + (f"; {undo}" if undo else ""),
            exit_code=exit_codes.FAILED,
            code="service_manager",
        )
