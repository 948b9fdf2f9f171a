import os
import threading
from pathlib import Path

import pytest

from kt_manifest.launch import agent_home
from kt_manifest.launch.agent_home import RenderedFile, RenderRefused, write_files

OURS = "# Rendered by kt for instance i\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "victim").write_text(OURS + "untouched")
    return path


def test_files_are_written_with_their_folders_and_modes(home: Path) -> None:
    write_files(home, [RenderedFile("a/b/c.toml", "x = 'ü'\n"), RenderedFile("d", "y", mode=0o400)])

    assert (home / "a/b/c.toml").read_text(encoding="utf-8") == "x = 'ü'\n"
    assert [(home / name).stat().st_mode & 0o777 for name in ("a", "a/b", "a/b/c.toml", "d")] == [
        0o700,
        0o700,
        0o600,
        0o400,
    ]
    assert sorted(entry.name for entry in home.iterdir()) == ["a", "d"]


def test_a_file_is_written_whole_again_whatever_its_mode_was(home: Path) -> None:
    (home / "f").write_text("much longer than what comes")
    (home / "f").chmod(0o444)

    write_files(home, [RenderedFile("f", "new")])

    assert (home / "f").read_text() == "new"
    assert (home / "f").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("path", ["../outside/victim", "/etc/x", "a/../../outside/victim", "config.toml", ""])
def test_an_unsafe_path_is_refused_even_if_a_snapshot_says_so(home: Path, path: str) -> None:
    with pytest.raises(RenderRefused):
        write_files(home, [RenderedFile(path, "x")])

    assert (home.parent / "outside" / "victim").read_text() == OURS + "untouched"
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("content", ["x", ""])
@pytest.mark.parametrize("link", ["folder", "deep", "file", "dangling"])
def test_a_symbolic_link_in_the_way_is_refused_not_followed(home: Path, link: str, content: str) -> None:
    path = {"folder": "sub/victim", "deep": "a/sub/victim", "file": "victim", "dangling": "gone"}[link]
    if link == "deep":
        (home / "a").mkdir()
    if link in ("folder", "deep"):
        (home / path).parent.symlink_to(home.parent / "outside")
    else:
        (home / path).symlink_to(home.parent / "outside" / path)

    with pytest.raises(RenderRefused, match="symbolic link") as caught:
        write_files(home, [RenderedFile(path, content)])

    assert caught.value.exit_code == 1
    assert (home.parent / "outside" / "victim").read_text() == OURS + "untouched"
    assert [entry.name for entry in (home.parent / "outside").iterdir()] == ["victim"]


def test_what_is_no_file_or_no_folder_is_refused(home: Path) -> None:
    (home / "folder").mkdir()
    (home / "file").write_text("x")
    os.mkfifo(home / "fifo")

    for path, says in (
        ("folder", "a folder"),
        ("file/x", "a regular file"),
        ("fifo", "no file"),
        ("fifo/x", "no file"),
    ):
        with pytest.raises(RenderRefused, match=says) as caught:
            write_files(home, [RenderedFile(path, "x")])

        assert all(
            part in str(caught.value) for part in (caught.value.got, caught.value.wanted, caught.value.do)
        )


def test_a_hard_link_is_left_to_its_other_name(home: Path) -> None:
    (home / "f").hardlink_to(home.parent / "outside" / "victim")

    write_files(home, [RenderedFile("f", "new")])

    assert (home / "f").read_text() == "new"
    assert (home.parent / "outside" / "victim").read_text() == OURS + "untouched"


def test_no_text_removes_what_was_rendered_before_and_nothing_else(home: Path) -> None:
    (home / "ours").write_text(OURS + "a = 1\n")
    (home / "theirs").write_text("a = 1\n")
    (home / "empty").write_text("")

    write_files(
        home, [RenderedFile(name, "") for name in ("ours", "theirs", "empty", "missing", "no/folder/x")]
    )

    assert sorted(entry.name for entry in home.iterdir()) == ["empty", "theirs"]


def test_a_home_that_is_missing_is_a_named_error_unless_nothing_is_to_be_done(tmp_path: Path) -> None:
    write_files(tmp_path / "missing", [])

    with pytest.raises(RenderRefused, match="missing"):
        write_files(tmp_path / "missing", [RenderedFile("a", "x")])
    assert not (tmp_path / "missing").exists()


def test_a_long_path_of_long_names_is_no_obstacle(home: Path) -> None:
    deep = "/".join(["d" * 200] * 3)

    write_files(home, [RenderedFile(deep, "x")])

    assert (home / deep).read_text() == "x"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system that takes no files")
def test_a_file_system_that_takes_no_files_is_a_named_error() -> None:
    for path in ("new", "new/below"):
        with pytest.raises(RenderRefused, match=path):
            write_files(Path("/proc/self"), [RenderedFile(path, "x")])


def test_no_descriptor_is_left_open(home: Path) -> None:
    (home / "link").symlink_to("x")
    before = len(list(Path("/dev/fd").iterdir()))

    for path, content in (("a/b/c", "x"), ("link", "x"), ("link/a", "x"), ("q/r", "")):
        try:
            write_files(home, [RenderedFile(path, content)])
        except RenderRefused:
            pass

    assert before == len(list(Path("/dev/fd").iterdir()))


def test_the_content_does_not_show_in_a_repr() -> None:
    assert "hunter2" not in repr(RenderedFile("a", "hunter2"))
    assert agent_home.HEADER.startswith("#")


def test_a_folder_that_turns_into_a_link_at_the_worst_moment_leads_nowhere(home: Path) -> None:
    """An agent swaps the folder as fast as it can; nothing outside is touched (removal, since it needs no fsync)."""
    (home / "real").mkdir()
    (home / "link").symlink_to(home.parent / "outside")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            for name in ("real", "link"):
                (home / name).rename(home / "sub")
                (home / "sub").rename(home / name)

    agent = threading.Thread(target=swap)
    agent.start()
    refused = 0
    for _ in range(8000):
        try:
            write_files(home, [RenderedFile("sub/victim", "")])
        except RenderRefused:
            refused += 1
    over.set()
    agent.join(timeout=30)

    assert refused
    assert (home.parent / "outside" / "victim").read_text() == OURS + "untouched"


def test_folders_are_made_for_their_owner_alone_and_what_is_in_them_stays(home: Path) -> None:
    (home / "there").mkdir(mode=0o750)
    (home / "there" / "kept").write_text("x")

    agent_home.make_folders(home, ["a/b", "there/below", "a\\c"])
    agent_home.make_folders(home, ["a/b", "there"])

    modes = {name: (home / name).stat().st_mode & 0o777 for name in ("a", "a/b", "a/c", "there/below")}
    assert dict.fromkeys(modes, 0o700) == modes
    assert "x" == (home / "there" / "kept").read_text()


@pytest.mark.parametrize(
    "path", ["", "/x", "../x", "a/../x", "config.toml", "link", "link/a", "file", "file/a", "pipe"]
)
def test_a_folder_that_would_lie_elsewhere_or_cannot_be_is_refused(home: Path, path: str) -> None:
    (home / "link").symlink_to(home.parent / "outside")
    (home / "file").write_text("mine")
    os.mkfifo(home / "pipe")

    with pytest.raises(RenderRefused) as refused:
        agent_home.make_folders(home, [path])

    assert 1 == refused.value.exit_code
    assert ["victim"] == [entry.name for entry in (home.parent / "outside").iterdir()]
    assert "mine" == (home / "file").read_text()


def test_a_home_that_is_away_takes_no_folder(home: Path) -> None:
    with pytest.raises(RenderRefused):
        agent_home.make_folders(home / "away", ["a"])


def test_no_folder_to_make_needs_no_home(tmp_path: Path) -> None:
    agent_home.make_folders(tmp_path / "away", [])

    assert [] == list(tmp_path.iterdir())


def test_a_file_of_the_home_is_read_through_no_link(home: Path) -> None:
    (home / "sub").mkdir()
    (home / "sub" / "a").write_bytes(b"x")
    (home / "link").symlink_to(home.parent / "outside")
    (home / "alias").symlink_to(home / "sub" / "a")
    os.mkfifo(home / "pipe")
    before = len(list(Path("/dev/fd").iterdir()))

    assert b"x" == agent_home.read_file(home, "sub/a")
    for path in (
        "sub",
        "sub/b",
        "no/a",
        "link/victim",
        "alias",
        "pipe",
        "../outside/victim",
        "/etc/hostname",
    ):
        assert agent_home.read_file(home, path) is None
    assert agent_home.read_file(home / "away", "a") is None
    assert before == len(list(Path("/dev/fd").iterdir()))
