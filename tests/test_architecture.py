"""The arrows between rooms, and the walls around dependencies: what may import what, and where.

An arrow or a wall changes here, with a decision in docs/decisions/, or not at all.
"""

import ast
import functools
import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
ROOMS = {
    name: REPOSITORY / name / f"kt_{name}"
    for name in (
        "ledger",
        "manifest",
        "roles",
        "gateway",
        "addons",
        "supervisor",
        "client",
        "conformance",
        "cli",
    )
}

ARROWS: dict[str, set[str]] = {
    "ledger": set(),
    "manifest": set(),
    "roles": set(),
    "gateway": {"ledger"},
    "addons": {"gateway", "ledger"},
    "supervisor": {"ledger", "manifest", "roles"},
    "client": {"ledger"},
    "conformance": {"ledger", "manifest", "client"},
    "cli": {"ledger", "manifest", "roles", "gateway", "addons", "supervisor", "client", "conformance"},
}
"""Room -> the rooms it may import."""

WALLS: dict[str, tuple[str, ...]] = {
    # dependency -> the only places (path prefixes from the repository) that may import it
    "sqlalchemy": ("ledger/kt_ledger/store/",),
    "alembic": ("ledger/kt_ledger/store/",),
    "genai_prices": ("ledger/kt_ledger/",),
    "keyring": ("manifest/kt_manifest/configuration/keychain_worker.py",),
    "tomlkit": ("manifest/kt_manifest/",),
    "ruamel": ("manifest/kt_manifest/launch/native/yaml_file.py",),
    "re2": ("manifest/kt_manifest/line_pattern.py",),
    "semver": ("manifest/kt_manifest/",),
    "pydantic": ("manifest/kt_manifest/", "supervisor/kt_supervisor/engine/"),
    "mitmproxy": ("gateway/kt_gateway/mitm/", "addons/kt_addons/"),
    "certifi": ("gateway/kt_gateway/mitm/",),  # the authorities that mitmproxy itself brings
    "httptools": (),  # tests only: the second opinion on request heads
    "brotli": ("gateway/kt_gateway/", "cli/kt_cli/demo/"),  # the demo's provider encodes
    "zstandard": ("gateway/kt_gateway/", "cli/kt_cli/demo/"),
    "aiohttp": ("gateway/kt_gateway/", "supervisor/kt_supervisor/engine/"),
    "psutil": ("supervisor/kt_supervisor/",),
    "click": ("cli/kt_cli/",),
    "rich": ("cli/kt_cli/",),
    "pytest": ("conformance/kt_conformance/plugin.py",),  # loaded by pytest only
}
ONE_FILE = {
    # dependency -> rooms in which exactly one file, or none, may import it
    "aiohttp": ("gateway",),
    "psutil": ("supervisor",),
}
STANDARD_LIBRARY_ONLY = ("roles/kt_roles/", "supervisor/kt_supervisor/keeper/", "client/kt_client/")
PURE_LEDGER = "ledger/kt_ledger/"
TABLES = ("migrations/",)
"""Path parts whose files may be longer than the wall for modules: they are data."""

MODULE_LINES = 300
FUNCTION_LINES = 60


@functools.cache
def sources_of(room: str) -> tuple[Path, ...]:
    return tuple(sorted(ROOMS[room].rglob("*.py")))


def sources() -> list[Path]:
    return sorted(path for room in ROOMS for path in sources_of(room))


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def place(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{place(path)}:{node.lineno}: imports are absolute here"
            yield node.module or ""


def top(name: str) -> str:
    return name.partition(".")[0]


@pytest.mark.parametrize("room", ROOMS)
def test_a_file_imports_only_what_its_room_may(room: str) -> None:
    allowed = {f"kt_{name}" for name in ARROWS[room] | {room}}

    for path in sources_of(room):
        reached = {top(name) for name in imports(path) if top(name).startswith("kt_")}

        assert set() == reached - allowed, place(path)


@pytest.mark.parametrize("room", ROOMS)
def test_a_dependency_stays_behind_its_wall(room: str) -> None:
    known = sys.stdlib_module_names | {f"kt_{name}" for name in ROOMS}

    for path in sources_of(room):
        where = place(path)
        for dependency in {top(name) for name in imports(path)} - known:
            assert dependency in WALLS, (
                f"{where} imports {dependency}, which has no wall yet: add it here and say why"
            )
            assert where.startswith(WALLS[dependency]), f"{where} imports {dependency}"


@pytest.mark.parametrize(("dependency", "rooms"), ONE_FILE.items())
def test_some_dependencies_have_one_file_a_room(dependency: str, rooms: tuple[str, ...]) -> None:
    for room in rooms:
        users = [place(p) for p in ROOMS[room].rglob("*.py") if dependency in map(top, imports(p))]

        assert len(users) <= 1, users


@pytest.mark.parametrize("room", ROOMS)
def test_some_rooms_need_nothing_installed(room: str) -> None:
    for path in sources_of(room):
        where = place(path)
        pure_ledger = where.startswith(PURE_LEDGER) and not where.startswith(f"{PURE_LEDGER}store/")
        if not (where.startswith(STANDARD_LIBRARY_ONLY) or pure_ledger):
            continue

        third_party = {top(n) for n in imports(path)} - sys.stdlib_module_names
        third_party = {name for name in third_party if not name.startswith("kt_")}

        assert third_party <= ({"genai_prices"} if pure_ledger else set()), where


def test_the_client_knows_the_pure_half_of_the_ledger_only() -> None:
    users = [
        place(p)
        for p in ROOMS["client"].rglob("*.py")
        if any(name.startswith("kt_ledger.store") for name in imports(p))
    ]

    assert [] == users


def test_the_pure_half_of_the_ledger_does_not_know_the_store() -> None:
    pure = [p for p in ROOMS["ledger"].rglob("*.py") if not place(p).startswith(f"{PURE_LEDGER}store/")]

    users = [place(p) for p in pure if any(name.startswith("kt_ledger.store") for name in imports(p))]

    assert [] == users


@pytest.mark.parametrize("room", ROOMS)
def test_modules_and_functions_stay_within_their_walls(room: str) -> None:
    for path in sources_of(room):
        long_functions = [
            f"{node.name} ({node.end_lineno - node.lineno + 1})"
            for node in ast.walk(tree(path))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.end_lineno is not None
            and node.end_lineno - node.lineno >= FUNCTION_LINES
        ]

        assert [] == long_functions, place(path)
        if not any(part in place(path) for part in TABLES):
            assert path.read_text("utf-8").count("\n") <= MODULE_LINES, place(path)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_introduces_itself_in_forty_lines(room: str) -> None:
    readme = (REPOSITORY / room / "README.md").read_text("utf-8")

    assert 1 <= readme.count("\n") <= 40


BANNED = {
    # call -> the only files that may make it
    # the keeper has a clock of its own: it pays for each import in every Run's memory
    "time.time": ("ledger/kt_ledger/clock.py",),
    "time.time_ns": ("ledger/kt_ledger/clock.py", "supervisor/kt_supervisor/keeper/loop.py"),
    "datetime.now": (),
    "datetime.utcnow": (),
    "asyncio.create_task": (),
}


@pytest.mark.parametrize("room", ROOMS)
def test_clocks_and_tasks_have_one_home(room: str) -> None:
    for path in sources_of(room):
        where = place(path)
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                call = f"{ast.unparse(node.func.value).rpartition('.')[2]}.{node.func.attr}"
                if call in BANNED and where not in BANNED[call]:
                    raise AssertionError(f"{where}:{node.lineno} calls {call}")


@pytest.mark.parametrize("page", ["docs/architecture.md", *(f"{room}/README.md" for room in ROOMS)])
def test_a_page_names_files_that_exist(page: str) -> None:
    text = (REPOSITORY / page).read_text("utf-8")
    room = page.partition("/")[0]
    known = [f"/{place(path)}" for path in (sources_of(room) if room in ROOMS else sources())]

    named = set(re.findall(r"`([a-z_0-9*/]+\.py)`", text))
    known += [f"/{place(path)}" for path in (REPOSITORY / "tests").rglob("*.py")]

    assert named or room in ROOMS
    assert [] == [name for name in sorted(named) if not any(fnmatch(path, f"*/{name}") for path in known)]


def test_nothing_names_this_machine_or_a_registry() -> None:
    forbidden = ("/root/", "/work/", "pypi.org", "registry.npmjs", "files.pythonhosted")
    skipped = {".git", ".venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"}
    found = []

    for path in REPOSITORY.rglob("*"):
        if skipped & set(path.parts) or not path.is_file() or path == Path(__file__):
            continue
        text = path.read_text("utf-8", "replace")
        found += [f"{place(path)}: {word}" for word in forbidden if word in text]

    assert [] == found


READS_LAYERS = {
    "supervisor/kt_supervisor/engine/instance/layer_files.py": "for `current_settings`, who merges and judges",
    "supervisor/kt_supervisor/engine/instance/configuring.py": "the text that is replaced",
    "supervisor/kt_supervisor/doctor/settings.py": "what stands in a file, where no engine runs",
    "cli/kt_cli/secret_places.py": "which secrets a file names, where no engine runs",
    "cli/kt_cli/completing.py": "which keys are set, for a shell that completes them",
}
"""File -> what it reads a layer's file for. Nobody else does: what is in force is `current_settings`'s to say."""


def test_a_layers_file_is_read_in_few_places_and_none_of_them_acts_on_it() -> None:
    reading = re.compile(r"\b(?:config_file\.(?:read|text)|layer_text\.(?:read|leaves))\(|config_file\.text,")

    users = {
        place(path)
        for room in set(ROOMS) - {"manifest"}
        for path in sources_of(room)
        if reading.search(path.read_text("utf-8"))
    }

    assert users == set(READS_LAYERS)


def test_what_a_layers_file_is_called_is_said_alike_where_it_cannot_be_imported() -> None:
    from kt_ledger.layout import StateLayout
    from kt_manifest import home_names
    from kt_manifest.configuration import config_file

    assert config_file.NAME == StateLayout(Path("/x")).fleet_config.name
    assert config_file.NAME in home_names.TABLE
