"""The same file runs from a checkout and from an installed wheel."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.supervisor.keeper import conftest

Start = Callable[..., conftest.Run]


def test_it_runs_as_installed_beside_its_sibling_package(start: Start, tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    shutil.copytree(conftest.REPOSITORY / "supervisor/kt_supervisor", site / "kt_supervisor")
    shutil.copytree(conftest.REPOSITORY / "ledger/kt_ledger", site / "kt_ledger")
    for name in ("selectors", "enum", "json"):
        (site / f"{name}.py").write_text("raise ImportError('a stranger of the same name')\n")

    record = start(["/bin/sh", "-c", "exit 8"], main=site / "kt_supervisor/keeper/__main__.py").ended()

    assert record["code"] == 8


def test_replacing_its_files_while_it_runs_changes_nothing(start: Start, tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    shutil.copytree(conftest.REPOSITORY / "supervisor/kt_supervisor", site / "kt_supervisor")
    shutil.copytree(conftest.REPOSITORY / "ledger/kt_ledger", site / "kt_ledger")
    run = start(
        ["/bin/sh", "-c", "read x; echo $x; exit 8"],
        main=site / "kt_supervisor/keeper/__main__.py",
        interactive=True,
        segment_limit_bytes=2,
    )
    engine = run.engine()
    run.running()

    shutil.rmtree(site)
    run.peer().ask(op="nonsense")
    with run.files.stdin.open("wb", buffering=0) as writer:
        writer.write(b"words\n")
    record = run.ended(engine)

    assert record["code"] == 8
    assert run.output() == b"words\n"
    assert run.release() == 0


def test_it_loads_neither_site_packages_nor_what_makes_it_heavy() -> None:
    code = (
        "import sys\n"
        f"__file__ = {str(conftest.MAIN)!r}\n"
        "source = open(__file__).read().split('if __name__')[0]\n"
        "exec(compile(source, __file__, 'exec'))\n"
        "heavy = 'pathlib dataclasses typing tempfile inspect asyncio subprocess threading logging'.split()\n"
        "print([name for name in heavy if name in sys.modules], [p for p in sys.path if 'site-packages' in p])\n"
    )

    ended = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, check=True)

    assert ended.stdout == b"[] []\n"
