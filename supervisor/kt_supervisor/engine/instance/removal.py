"""What is left of an instance on the disk once its name is free: forgotten always, deleted where that was asked for."""

import shutil

from kt_supervisor.engine.output import run_logs
from kt_supervisor.engine.parts import Parts
from kt_supervisor.engine.run import run_environment, run_settings


def forget(parts: Parts, instance_id: str) -> None:
    """Forget what was kept for restarts: it belongs to the registration. Raises OSError."""
    run_environment.forget(parts.files, instance_id)
    run_settings.forget(parts.files, instance_id)


def delete_folders(parts: Parts, instance_id: str, name: str) -> None:
    """Delete the Agent Home and the output of all Runs. Raises OSError."""
    for run in run_logs.runs_of(parts.files, instance_id):
        shutil.rmtree(run.root, ignore_errors=True)
    home = parts.files.home(name)
    if home.is_symlink() or home.is_file():
        home.unlink()
    elif home.exists():
        # Out of the way first: what is still being written into it cannot keep the name.
        gone = home.with_name(f".removed-{instance_id}")
        home.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
