"""`kt engine install` against a service manager that is a program of the test's: it writes down what it was told."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kt_cli import service
from kt_client.errors import KtError
from kt_ledger.layout import StateLayout

SYSTEMCTL = """#!/bin/sh
echo "$@" >> "$TOLD"
[ -z "$NO_BUS" ] || { echo "Failed to connect to bus" >&2; exit 1; }
case "$*" in
  *"enable --now"*"disable"*) ;;
  "--user disable"*) [ ! -f "$TOLD.pid" ] || kill $(cat "$TOLD.pid") ;;
  "--user enable"*) eval "exec $(sed -n 's/^ExecStart=//p' "$XDG_CONFIG_HOME"/systemd/user/kt-engine*.service)" \
      > /dev/null 2>&1 < /dev/null & echo $! > "$TOLD.pid" ;;
esac
"""


@pytest.fixture
def manager(tmp_path: Path) -> dict[str, str]:
    """The variables under which `systemctl` is ours."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "systemctl").write_text(SYSTEMCTL)
    (programs / "systemctl").chmod(0o755)
    return {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "TOLD": str(tmp_path / "told"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "KT_SERVICE": "systemd",
    }


def files(manager: dict[str, str]) -> list[Path]:
    return list(Path(manager["XDG_CONFIG_HOME"]).rglob("*.service"))


def test_printing_does_nothing(kt: Any, manager: dict[str, str]) -> None:
    done = kt("engine", "install", "--print", env=manager)

    assert 0 == done.code, done.err
    assert "KillMode=process" in done.out and str(kt.state) in done.out
    assert [] == files(manager)
    assert not Path(manager["TOLD"]).exists() and not kt.state.exists()


def test_a_service_takes_over_from_the_engine_that_runs_and_leaves_its_agent_alone(
    kt: Any, manager: dict[str, str]
) -> None:
    sleeps = [sys.executable, "-c", "import time; time.sleep(600)"]
    kt.client.register("bot", kind="command", command=sleeps)
    run_id = kt.client.start("bot")["run_id"]
    before = kt.client.engine_status()

    done = kt("engine", "install", env=manager)
    after = json.loads(kt("engine", "status", "--json").out)
    again = kt.client.show("bot")["instance"]

    assert 0 == done.code, done.err
    [unit] = files(manager)
    assert [f"wrote {unit}", "ran systemctl --user daemon-reload"] == done.out.splitlines()[:2]
    assert "to undo: kt engine uninstall" in done.err
    assert int(Path(manager["TOLD"] + ".pid").read_text()) == after["pid"] != before["pid"]
    assert (None, "systemd") == (before["service"], after["service"])
    assert (run_id, "running") == (again["run_id"], again["state"])

    gone = kt("engine", "uninstall", env=manager)
    assert 0 == gone.code, gone.err
    assert [] == files(manager)
    assert "running" == kt.client.show("bot")["instance"]["state"]


def test_a_manager_that_is_away_is_told_with_what_is_there(kt: Any, manager: dict[str, str]) -> None:
    away = {**manager, "NO_BUS": "1"}

    done = kt("engine", "install", env=away)
    gone = kt("engine", "uninstall", env=away)

    assert (1, "") == (done.code, done.out)
    assert "Failed to connect to bus" in done.err and "kt engine uninstall" in done.err
    assert 0 == gone.code
    assert "Failed to connect to bus" in gone.err and "removed" in gone.out
    assert [] == files(manager)


def test_nothing_installed_is_nothing_to_take_away(kt: Any, manager: dict[str, str]) -> None:
    done = kt("engine", "uninstall", env=manager)

    assert 3 == done.code
    assert "nothing to uninstall" in done.err


def test_a_system_without_a_known_manager_is_exit_5(tmp_path: Path) -> None:
    with pytest.raises(KtError, match="kt engine run") as caught:
        service.of(StateLayout(tmp_path), platform="win32")

    assert 5 == caught.value.exit_code


def test_a_waiting_engine_serves_once_the_other_has_ended(kt: Any) -> None:
    kt.client.engine_start()
    command = [sys.executable, "-m", "kt_supervisor.engine", "--service", "--foreground", "--state-dir"]
    waiting = subprocess.Popen([*command, str(kt.state)], stderr=subprocess.DEVNULL, env=kt.environment())
    try:
        kt("engine", "upgrade")
        pid = kt.client.engine_status()["pid"]

        assert waiting.poll() is None
        assert waiting.pid == pid
    finally:
        kt.end()
        waiting.wait(30)
