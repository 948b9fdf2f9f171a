import multiprocessing
import os
from pathlib import Path

import pytest

from kt_manifest import replacing, toml_text
from kt_manifest.configuration import secrets_file
from kt_manifest.configuration.secrets_file import SecretInvalid, SecretsFileUnusable

CANARY = "canary-91b0c2"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "secrets.toml"


def written(file: Path, text: str, mode: int = 0o600) -> Path:
    file.write_text(text)
    file.chmod(mode)
    return file


def test_the_file_is_made_for_its_owner_alone_whatever_the_umask(file: Path) -> None:
    before = os.umask(0)
    try:
        replaced = secrets_file.set(file, "KEY", CANARY)
    finally:
        os.umask(before)

    assert replaced is False
    assert 0o600 == file.stat().st_mode & 0o777
    assert {"KEY": CANARY} == secrets_file.entries(file)


def test_comments_and_order_stay_and_only_one_entry_changes(file: Path) -> None:
    text = '# mine\nB = "b" # second\n\nA = "a"\nNUMBER = 3\n[table]\nx = 1\n'
    written(file, text)

    assert secrets_file.set(file, "A", 'new "\\ value') is True
    assert secrets_file.set(file, "C", "c") is False
    assert secrets_file.remove(file, "B") is True

    found = file.read_text()
    assert found.startswith("# mine\n")
    assert {"A": 'new "\\ value', "NUMBER": None, "C": "c", "table": None} == secrets_file.entries(file)
    assert "NUMBER = 3\n" in found
    assert "[table]\nx = 1" in found


def test_what_is_there_already_is_not_written_again(file: Path) -> None:
    secrets_file.set(file, "A", "a")
    before = file.stat().st_ino

    secrets_file.set(file, "A", "a")

    assert before == file.stat().st_ino


def test_nothing_to_remove_is_said(file: Path) -> None:
    assert secrets_file.remove(file, "A") is False
    assert not file.exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_lets_others_in_is_neither_read_nor_repaired(file: Path, mode: int) -> None:
    written(file, f'KEY = "{CANARY}"\n', mode)

    for act in (
        lambda: secrets_file.entries(file),
        lambda: secrets_file.set(file, "A", "a"),
        lambda: secrets_file.remove(file, "KEY"),
    ):
        with pytest.raises(SecretsFileUnusable, match=f"mode {mode:04o}.*chmod 600 {file}") as caught:
            act()
        assert (1, False) == (caught.value.exit_code, CANARY in str(caught.value))
    assert mode == file.stat().st_mode & 0o777


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_left_alone(file: Path) -> None:
    written(file, f'KEY = "{CANARY}"\n')
    os.chown(file, 12345, -1)

    with pytest.raises(SecretsFileUnusable, match="another user"):
        secrets_file.set(file, "A", "a")


def test_a_link_is_read_and_not_replaced(file: Path, tmp_path: Path) -> None:
    target = written(tmp_path / "target", f'KEY = "{CANARY}"\n')
    file.symlink_to(target)

    assert {"KEY": CANARY} == secrets_file.entries(file)
    with pytest.raises(SecretsFileUnusable, match="symbolic link"):
        secrets_file.set(file, "A", "a")
    assert file.is_symlink()
    assert f'KEY = "{CANARY}"\n' == target.read_text()


def test_what_is_no_file_is_refused_without_waiting(file: Path, tmp_path: Path) -> None:
    file.mkdir()
    with pytest.raises(SecretsFileUnusable, match="directory"):
        secrets_file.set(file, "A", "a")
    with pytest.raises(SecretsFileUnusable, match="directory"):
        secrets_file.entries(file)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(SecretsFileUnusable, match="FIFO"):
        secrets_file.set(tmp_path / "fifo", "A", "a")


@pytest.mark.parametrize(
    "text", [f'KEY = "{CANARY}', f"{CANARY} = ", f"KEY = {CANARY}", f'A = 1\nA = "{CANARY}"']
)
def test_a_file_that_is_no_toml_tells_the_line_and_is_not_touched(file: Path, text: str) -> None:
    written(file, text)

    with pytest.raises(SecretsFileUnusable, match=r"not valid TOML \(line \d") as caught:
        secrets_file.set(file, "B", "b")

    assert CANARY not in str(caught.value)
    assert CANARY not in str(caught.value.__cause__)
    assert text == file.read_text()


def test_a_table_is_not_overwritten_by_a_value(file: Path) -> None:
    written(file, f'[A]\nx = "{CANARY}"\n')

    with pytest.raises(SecretsFileUnusable, match='a table or an array at "A"'):
        secrets_file.set(file, "A", "a")

    assert f'[A]\nx = "{CANARY}"\n' == file.read_text()


def test_a_number_becomes_the_text_that_is_set(file: Path) -> None:
    written(file, "A = 3 # was a number\n")

    assert secrets_file.set(file, "A", "three") is True
    assert {"A": "three"} == secrets_file.entries(file)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("A", "", "got nothing"),
        ("A", f"{CANARY}\0", "NUL"),
        ("A", f"{CANARY}\nsecond", "2 lines.*by hand: A = "),
        ("A", f"{CANARY}\rsecond", "2 lines"),
        ("A", f"{CANARY}\udcff", "surrogate"),
        ("A", CANARY * 90_000, "1170000 bytes, wanted one of at most 65536"),
        ("a=b", CANARY, "'='"),
        ("", CANARY, "an empty name"),
        ("a}", CANARY, "'}'"),
        ("a\x1b[2J", CANARY, "control character"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_anything_is_written(
    file: Path, name: str, value: str, says: str
) -> None:
    with pytest.raises(SecretInvalid, match=says) as caught:
        secrets_file.set(file, name, value)

    assert (2, False) == (caught.value.exit_code, CANARY in str(caught.value))
    assert not file.exists()


def test_a_file_that_is_full_says_so_and_stays(file: Path) -> None:
    value = "x" * secrets_file.LIMIT_BYTES
    for number in range(3):
        secrets_file.set(file, f"K{number}", value)

    with pytest.raises(SecretsFileUnusable, match="more than 256 KiB"):
        secrets_file.set(file, "K3", value)

    assert ["K0", "K1", "K2"] == list(secrets_file.entries(file))
    assert file.stat().st_size < toml_text.LIMIT_BYTES


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SecretsFileUnusable, match="No such file"):
        secrets_file.set(tmp_path / "missing" / "secrets.toml", "A", "a")


def _set_many(file: Path, who: str) -> None:
    for number in range(20):
        secrets_file.set(file, f"{who}{number}", f"value-{who}-{number}", timeout_s=60)


def test_two_writers_at_once_lose_nothing(file: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_set_many, args=(file, who)) for who in "AB"]

    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)

    assert [0, 0] == [writer.exitcode for writer in writers]
    assert {f"{who}{n}": f"value-{who}-{n}" for who in "AB" for n in range(20)} == secrets_file.entries(file)
    assert [file] == list(file.parent.iterdir())


def test_a_writer_that_waits_too_long_says_so(file: Path) -> None:
    with (
        replacing.locked(file.parent),
        pytest.raises(SecretsFileUnusable, match=r"another process.*try again"),
    ):
        secrets_file.set(file, "A", "a", timeout_s=0.05)
