import pytest

from kt_manifest.launch import native_path


@pytest.mark.parametrize(
    "path",
    [
        "a",
        "config/agent.toml",
        "a\\b",
        ".hidden/x",
        "a b/ñ",
        "...",
        "sub/config.toml",
        "sub/memory",
        "memory.md",
        "x" * 255,
    ],
)
def test_a_relative_path_of_plain_names_is_safe(path: str) -> None:
    assert native_path.fault(path) is None


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/etc/passwd",
        "\\x",
        "\\\\server\\share",
        "C:\\x",
        "c:x",
        "C:/x",
        ".",
        "..",
        "../x",
        "a/../b",
        "a/./b",
        "a//b",
        "a/",
        "a\\..\\b",
        "a\\\\b",
        "a\0",
        "a\nb",
        "\x7f",
        "\ud800",
        "x" * 256,
        "é" * 128,
        "config.toml",
        "Config.TOML",
        ".kt.new",
        "a/.kt.new",
        "config.toml/x",
        "a/.kt.new/b",
        "effective-config.json",
        "Effective-Config.JSON",
        "memory",
        "memory/notes",
        "Memory",
        ".kt.merged.json",
        ".\u212at.merged.json",
    ],
    ids=range(36),
)
def test_a_path_that_leaves_the_home_or_hits_our_own_files_is_unsafe(path: str) -> None:
    assert native_path.fault(path)


def test_both_slashes_separate() -> None:
    assert native_path.segments("a/b\\c") == ("a", "b", "c")
