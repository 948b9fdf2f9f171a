import os
from pathlib import Path

import pytest

from kt_manifest.launch import executable


def _program(path: Path, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def test_a_bare_name_is_found_on_the_childs_own_path_in_its_order(tmp_path: Path) -> None:
    first, second = _program(tmp_path / "one" / "prog"), _program(tmp_path / "two" / "prog")

    for folders in ((first.parent, second.parent), (tmp_path / "none", first.parent)):
        env = {"PATH": ":".join(map(str, folders))}

        assert executable.find_executable("prog", env, tmp_path) == str(first)


def test_a_folder_and_a_file_without_permission_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "one" / "prog").mkdir(parents=True)
    _program(tmp_path / "two" / "prog", 0o644)
    third = _program(tmp_path / "three" / "prog")
    env = {"PATH": f"{tmp_path}/one:{tmp_path}/two:{tmp_path}/three"}

    assert executable.find_executable("prog", env, tmp_path) == str(third)


def test_empty_and_relative_entries_start_from_the_childs_folder(tmp_path: Path) -> None:
    here, below = _program(tmp_path / "here"), _program(tmp_path / "bin" / "below")

    for path in (":/nowhere", "/nowhere:", "bin:", "bin::"):
        assert executable.find_executable("here", {"PATH": path}, tmp_path) == str(here)
    assert executable.find_executable("below", {"PATH": "bin"}, tmp_path) == str(below)


def test_without_a_path_the_systems_own_counts(tmp_path: Path) -> None:
    assert executable.find_executable("sh", {}, tmp_path).endswith("/sh")


def test_an_absolute_path_is_taken_as_it_is(tmp_path: Path) -> None:
    program = _program(tmp_path / "a b" / "prog")

    assert executable.find_executable(str(program), {"PATH": ""}, tmp_path) == str(program)


def test_a_link_to_a_program_is_one(tmp_path: Path) -> None:
    _program(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")

    assert executable.find_executable(str(tmp_path / "link"), {}, tmp_path) == str(tmp_path / "link")


def test_who_set_the_path_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        executable.ExecutableMissing, match=r"install it, or correct agent\.PATH, which sets PATH"
    ):
        executable.find_executable("prog", {"PATH": "x"}, tmp_path, path_from="agent.PATH")


def test_what_is_nowhere_is_missing_and_says_where_it_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to("nowhere")

    for name, says in (
        ("prog", f"on PATH={tmp_path}"),
        ("/no/prog", "at that path"),
        ("dangling", "on PATH="),
        ("a/b", "on PATH"),
    ):
        with pytest.raises(executable.ExecutableMissing, match=says) as caught:
            executable.find_executable(name, {"PATH": str(tmp_path)}, tmp_path)

        assert caught.value.exit_code == 1
        assert all(
            part in str(caught.value) for part in (caught.value.got, caught.value.wanted, caught.value.do)
        )


def test_what_is_there_but_no_program_is_told_what_it_is(tmp_path: Path) -> None:
    _program(tmp_path / "plain", 0o644)
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "fifo")

    for name, says in (("plain", "permission"), ("folder", "a folder"), ("fifo", "no regular file")):
        for asked in (name, str(tmp_path / name)):
            with pytest.raises(executable.NotExecutable, match=says) as caught:
                executable.find_executable(asked, {"PATH": str(tmp_path)}, tmp_path)

            assert caught.value.exit_code == 1
            assert str(tmp_path / name) == caught.value.path
    for name in ("loop", "n" * 300):
        with pytest.raises((executable.NotExecutable, executable.ExecutableMissing)):
            executable.find_executable(name, {"PATH": str(tmp_path)}, tmp_path)
