import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import small_disk

from kt_manifest.configuration import config_file

COMMENTED = """\
# the operator's own words
model = "a"  # small

[metering]
# where the traffic goes
upstream_base_url = "https://h/v1"

[agent]
FOO = "x"
"quoted.BAR" = "y"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def test_a_file_that_is_not_there_is_empty(path: Path) -> None:
    assert config_file.read(path) == {}
    assert config_file.unset(path, "model") is False
    assert not path.exists()


def test_what_was_set_is_read_back_and_is_only_ours(path: Path) -> None:
    config_file.set(path, "model", "a")
    config_file.set(path, "metering.listener_auth", "none")
    config_file.set(path, "acp.args", ["-a", "b c"])
    config_file.set(path, "agent.FOO", 'quo"te\n\x1bü')

    assert config_file.read(path) == {
        "model": "a",
        "metering.listener_auth": "none",
        "acp.args": ["-a", "b c"],
        "agent.FOO": 'quo"te\n\x1bü',
    }
    assert path.stat().st_mode & 0o777 == 0o600
    assert [path] == list(path.parent.iterdir())


def test_comments_order_and_everything_else_survive(path: Path) -> None:
    path.write_text(COMMENTED)

    config_file.set(path, "model", "b")
    config_file.set(path, "metering.listener_auth", "none")
    config_file.set(path, "agent.quoted.BAR", "z")

    assert path.read_text() == COMMENTED.replace('"a"', '"b"').replace('"y"', '"z"').replace(
        '"https://h/v1"\n', '"https://h/v1"\nlistener_auth = "none"\n'
    )


def test_windows_line_ends_survive(path: Path) -> None:
    path.write_bytes(b'model = "a"\r\n# c\r\n')

    config_file.set(path, "model", "b")

    assert path.read_bytes() == b'model = "b"\r\n# c\r\n'


def test_unset_removes_a_key_and_the_table_that_it_leaves_empty(path: Path) -> None:
    config_file.set(path, "model", "a")
    config_file.set(path, "agent.A.B", "x")
    config_file.set(path, "agent.C", "y")

    assert config_file.unset(path, "agent.A.B")
    assert config_file.read(path) == {"model": "a", "agent.C": "y"}
    assert config_file.unset(path, "agent.C")
    assert "agent" not in path.read_text()
    assert not config_file.unset(path, "agent.C")
    assert not config_file.unset(path, "agent")


def test_a_key_below_a_value_is_refused_naming_it(path: Path) -> None:
    config_file.set(path, "agent.A", "x")
    before = path.read_bytes()

    with pytest.raises(config_file.ShapeConflict, match=r"agent\.A.*unset agent\.A first") as caught:
        config_file.set(path, "agent.A.B.C", "y")

    assert (caught.value.exit_code, caught.value.conflicting) == (2, "agent.A")
    assert before == path.read_bytes()


def test_a_value_in_place_of_a_table_is_refused_naming_what_is_below(path: Path) -> None:
    config_file.set(path, "agent.A.B", "x")

    with pytest.raises(config_file.ShapeConflict) as caught:
        config_file.set(path, "agent.A", "y")

    assert caught.value.conflicting == "agent.A.B"


def test_what_was_typed_by_hand_is_read_as_text(path: Path) -> None:
    path.write_text(
        "a.b = 5\nc = true\nd = 1.5\ne = 2026-01-02\nf = [1, 'x']\n\"agent.X\" = 'q'\ng = 07:08:09\n"
        "h = {i = 'j'}\nk = []\n"
    )

    assert config_file.read(path) == {
        "a.b": "5",
        "c": "true",
        "d": "1.5",
        "e": "2026-01-02",
        "f": ["1", "x"],
        "agent.X": "q",
        "g": "07:08:09",
        "h.i": "j",
        "k": [],
    }


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\nb = = 2\n", 2),
        ("a = 1\na = 2\n", 2),
        ("a = '", 1),
        ("x = 1\na = [[1]]\n", 2),
        ("x = 1\n\n[[a]]\nb = 1\n", 3),
        ("a = 1\nb = [{c = 1}]", 2),
        ("[a]\nb = 1\n[x]\n'y' = 1\n[q]\n", None),
        ("['a.b']\nc = 1\n[a]\n'b.c' = 2\n", 4),
        ("x = " + "[" * 9999, 1),
        ("é = 1", 1),
        ("a = 1\nb = '\udcff'", 2),
    ],
    ids=range(11),
)
def test_a_malformed_file_is_named_with_its_line_and_never_touched(
    path: Path, text: str, line: int | None
) -> None:
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    before = path.read_bytes()

    if line is None:
        assert config_file.read(path)
        return
    for attempt in (lambda: config_file.read(path), lambda: config_file.set(path, "model", "x")):
        with pytest.raises(config_file.MalformedLayer) as caught:
            attempt()

        assert (1, path, line) == (caught.value.exit_code, caught.value.path, caught.value.line)
        assert f"{path}, line {line}" in str(caught.value)
    assert before == path.read_bytes()


def test_what_cannot_be_read_or_written_is_named_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "real.toml").write_text("a = 1\n")
    (tmp_path / "link.toml").symlink_to("real.toml")

    for name in ("fifo", "missing/config.toml", "link.toml", "nul\0"):
        with pytest.raises(config_file.LayerUnavailable) as caught:
            config_file.set(tmp_path / name, "model", "x")

        assert caught.value.exit_code == 1
        assert all(
            part and part in str(caught.value)
            for part in (caught.value.got, caught.value.wanted, caught.value.do)
        )
    assert config_file.read(tmp_path / "link.toml") == {"a": "1"}


def test_a_lock_that_is_never_released_is_given_up_in_time(path: Path) -> None:
    import fcntl

    holder = os.open(path.parent, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)

    with pytest.raises(config_file.LayerUnavailable, match="locked by another process"):
        config_file.set(path, "model", "x", timeout_s=0.05)

    os.close(holder)


WRITER = """
import sys
from pathlib import Path
from kt_manifest.configuration import config_file
for number in range(15):
    config_file.set(Path(sys.argv[1]), f"agent.W{sys.argv[2]}_{number}", str(number), timeout_s=60)
    if number % 3 == 2:
        assert config_file.unset(Path(sys.argv[1]), f"agent.W{sys.argv[2]}_{number - 1}", timeout_s=60)
"""


def test_of_four_writers_at_once_no_update_is_lost(path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(number)]) for number in range(4)
    ]

    assert [writer.wait(timeout=60) for writer in writers] == [0] * 4

    kept = [number for number in range(15) if number % 3 != 1]
    assert config_file.read(path) == {
        f"agent.W{writer}_{number}": str(number) for writer in range(4) for number in kept
    }


def test_writing_the_same_value_again_does_not_touch_the_file(path: Path) -> None:
    config_file.set(path, "model", "a")
    before = path.stat()

    config_file.set(path, "model", "a")

    assert (before.st_ino, before.st_mtime_ns) == (path.stat().st_ino, path.stat().st_mtime_ns)


def test_a_layout_that_the_editor_cannot_take_is_refused_unharmed(path: Path) -> None:
    deep = "a = " + "{a = " * 200 + "1" + "}" * 200 + "\n"  # tomlkit gives up at 100 levels
    path.write_text(deep)

    assert list(config_file.read(path).values()) == ["1"]
    with pytest.raises(config_file.MalformedLayer, match="cannot be edited in place"):
        config_file.set(path, "model", "x")

    assert path.read_text() == deep


NAMES = st.text("abXY_-é .\"'", min_size=1, max_size=4).filter(lambda name: "." not in name)
KEYS = st.lists(NAMES, min_size=1, max_size=3).map(".".join)
VALUES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), max_size=3),
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["set", "unset"]), KEYS, VALUES), max_size=8),
    st.sampled_from(["", COMMENTED]),
)
def test_any_sequence_of_edits_is_what_a_dictionary_would_hold(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[str, str, str | list[str]]], begin: str
) -> None:
    path = tmp_path_factory.mktemp("c") / "config.toml"
    path.write_text(begin)
    expected = config_file.read(path)

    for verb, key, value in edits:
        try:
            if verb == "unset":
                assert config_file.unset(path, key) is (key in expected)
                expected.pop(key, None)
            else:
                config_file.set(path, key, value)
                expected[key] = value
        except config_file.ShapeConflict as error:
            assert error.conflicting in expected

    assert expected == config_file.read(path)


@pytest.mark.parametrize(
    "text",
    [
        'metering.listener_auth = "token"\n',
        'metering = { listener_auth = "token" }\n',
        '[metering]\nlistener_auth = "token"\n',
        '"metering.listener_auth" = "token"\n',
        '[metering]\n[agent]\nA = "x"\n[metering.sub]\nb = "c"\n',
        "[a.b]\nx = '1'\n[c]\n[a.d]\ny = '2'\n",
        "[agent]\n",
    ],
)
def test_every_way_to_write_a_table_can_be_edited_or_is_refused_unharmed(path: Path, text: str) -> None:
    path.write_text(text)
    before = config_file.read(path)

    for key in ("metering.listener_auth", "agent.NEW", "a.b.x", "a.d.z"):
        config_file.set(path, key, "none")
        before[key] = "none"
        assert before == config_file.read(path)
    for key in list(before):
        assert config_file.unset(path, key)
    assert config_file.read(path) == {}


def test_a_set_tells_what_was_there(path: Path) -> None:
    told = [config_file.set(path, "model", value) for value in ("a", "b")]

    assert [None, "a"] == told


def test_a_file_is_replaced_whole_by_what_was_edited(path: Path) -> None:
    path.write_text(COMMENTED)
    edited = COMMENTED.replace('"a"', '"b"')

    values = config_file.replace(path, edited, was=COMMENTED)

    assert values == config_file.read(path)
    assert edited == path.read_text()
    assert "b" == values["model"]
    assert 0o600 == path.stat().st_mode & 0o777


def test_an_edit_of_what_has_changed_meanwhile_is_refused_and_names_the_keys(path: Path) -> None:
    path.write_text(COMMENTED)
    config_file.set(path, "model", "theirs")
    theirs = path.read_text()

    with pytest.raises(config_file.ChangedMeanwhile) as refused:
        config_file.replace(path, 'model = "mine"\n', was=COMMENTED)

    assert ["model"] == refused.value.keys
    assert "another writer's change of model" in str(refused.value)
    assert theirs == path.read_text()


def test_nothing_that_is_no_layer_takes_a_files_place(path: Path) -> None:
    path.write_text(COMMENTED)

    with pytest.raises(config_file.MalformedLayer):
        config_file.replace(path, "model = ", was=COMMENTED)
    with pytest.raises(config_file.LayerFull):
        config_file.replace(path, COMMENTED + "#" * 262_000, was=COMMENTED)

    assert COMMENTED == path.read_text()
    assert [path] == list(path.parent.iterdir())


def test_a_file_that_would_grow_beyond_what_is_read_stays_as_it_is(path: Path) -> None:
    config_file.set(path, "agent.A", "x" * 100_000)
    config_file.set(path, "agent.B", "x" * 100_000)
    before = path.read_bytes()

    with pytest.raises(config_file.LayerFull, match="wanted at most 262144"):
        config_file.set(path, "agent.C", "x" * 100_000)

    assert before == path.read_bytes()


def test_a_link_is_not_cut_by_an_edit(path: Path) -> None:
    target = path.with_name("target.toml")
    target.write_text(COMMENTED)
    path.symlink_to(target)

    with pytest.raises(config_file.LayerUnavailable, match="a symbolic link"):
        config_file.replace(path, 'model = "b"\n', was=COMMENTED)

    assert path.is_symlink()
    assert COMMENTED == target.read_text()


def test_a_full_and_a_read_only_disk_refuse_the_change_whole(tmp_path: Path) -> None:
    with small_disk.mounted(tmp_path / "disk", "16k") as disk:
        path = disk / "config.toml"
        config_file.set(path, "model", "a")
        before = path.read_bytes()

        with pytest.raises(config_file.LayerUnavailable, match="No space left"):
            config_file.set(path, "agent.A", "x" * 60_000)
        with pytest.raises(config_file.LayerUnavailable, match="No space left"):
            config_file.replace(path, "#" * 60_000, was=before.decode())
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with pytest.raises(config_file.LayerUnavailable, match="Read-only"):
            config_file.set(path, "model", "b")

        assert before == path.read_bytes()
        assert [path] == list(disk.iterdir())
