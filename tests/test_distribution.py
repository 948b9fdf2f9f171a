"""The wheel: builds, installs beside supervisord without touching it, and its `kt` runs there."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from zipfile import ZipFile

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


def run(*command: str | Path) -> str:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean, cwd="/")
    assert 0 == done.returncode, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    build = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(out),
        str(REPOSITORY),
    ]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr
    return next(out.glob("ktmeter-*.whl"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that holds supervisord alone; what ktmeter depends on is lent by a path entry."""
    root = tmp_path_factory.mktemp("environment")
    venv.create(root, with_pip=False, symlinks=True)
    site = next(root.glob("lib/python*/site-packages"))
    for file in metadata.files("supervisor") or ():
        source = Path(str(file.locate()))
        if source.is_file() and ".." not in file.parts:
            target = site / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return root


@pytest.fixture(scope="module")
def installed(wheel: Path, environment: Path) -> Path:
    """The same environment with the wheel installed into it."""
    pip = (sys.executable, "-m", "pip", "--python", environment / "bin/python")
    before = list(supervisord_files(environment))
    run(*pip, "install", "-qq", "--no-deps", "--no-index", wheel)
    assert before and before == list(supervisord_files(environment)), "supervisord's files are its own"
    return environment


def supervisord_files(environment: Path) -> Iterator[tuple[str, str]]:
    site = next(environment.glob("lib/python*/site-packages"))
    for path in sorted(site.glob("supervisor*/**/*.py")):
        yield str(path), hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_wheel_installs_beside_supervisord_and_runs(installed: Path) -> None:
    assert f"kt {metadata.version('ktmeter')}" in run(installed / "bin/kt", "--version")
    assert "site-packages/kt_cli" in run(
        installed / "bin/python", "-c", "import kt_cli; print(kt_cli.__file__)"
    )
    assert "supervisor/" in run(
        installed / "bin/python", "-c", "import supervisor.supervisord as s; print(s.__file__)"
    )


def test_the_wheel_holds_the_rooms_the_fixtures_and_nothing_else(wheel: Path) -> None:
    tops = {name.partition("/")[0] for name in ZipFile(wheel).namelist()}

    rooms = {
        "kt_ledger",
        "kt_manifest",
        "kt_roles",
        "kt_gateway",
        "kt_addons",
        "kt_supervisor",
        "kt_client",
        "kt_conformance",
        "kt_cli",
    }
    assert rooms == {top for top in tops if not top.endswith(".dist-info")}
    names = set(ZipFile(wheel).namelist())
    assert any(name.startswith("kt_cli/demo/fixtures/wire/") for name in names)
    here = {
        f"kt_manifest/{path.relative_to(REPOSITORY).as_posix()}"
        for path in (REPOSITORY / "adapters").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert here == {name for name in names if name.startswith("kt_manifest/adapters/")}


def test_the_installed_kt_lists_and_shows_the_adapters_that_it_brought(installed: Path) -> None:
    listed = json.loads(run(installed / "bin/kt", "adapter", "list", "--json"))

    assert {"example-shim", "openai-compatible", "self-reporting"} <= {
        row["kind"] for row in listed["adapters"]
    }
    for row in listed["adapters"]:
        assert "site-packages/kt_manifest/adapters" in row["folder"]
        assert row["kind"] in run(installed / "bin/kt", "adapter", "show", row["kind"])
