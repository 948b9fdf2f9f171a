import json
from pathlib import Path
from typing import Any

import pytest

from kt_manifest.contract import json_schema, manifest


def test_a_new_one_is_valid_and_named_after_its_folder(kt: Any, tmp_path: Path) -> None:
    done = kt("adapter", "new", "My Agent!", cwd=tmp_path)

    assert (0, f"Wrote {Path('My Agent!') / 'adapter.toml'} (kind my-agent).\n") == (done.code, done.out)
    assert 0 == kt("adapter", "validate", "My Agent!", cwd=tmp_path).code
    adapter = manifest.load(tmp_path / "My Agent!")
    assert ("my-agent", "self-reported") == (adapter.kind, adapter.metering_source)
    assert adapter.start is not None and "my-agent" == adapter.start.exec
    assert not kt.state.exists()


def test_what_was_asked_for_is_in_it(kt: Any, tmp_path: Path) -> None:
    words = ("--kind", "bot", "--observed", "--exec", "/usr/bin/bot")

    assert 0 == kt("adapter", "new", str(tmp_path / "a" / "b"), *words).code
    adapter = manifest.load(tmp_path / "a" / "b")
    assert ("bot", "engine-observed") == (adapter.kind, adapter.metering_source)
    assert adapter.start is not None and "/usr/bin/bot" == adapter.start.exec


def test_one_source_counts(kt: Any, tmp_path: Path) -> None:
    done = kt("adapter", "new", str(tmp_path / "a"), "--observed", "--self-reported")

    assert (2, "", True) == (done.code, done.out, "wanted one of them" in done.err)
    assert not (tmp_path / "a").exists()


def test_the_next_command_can_be_copied(kt: Any, tmp_path: Path) -> None:
    done = kt("adapter", "new", "Bad Dir", cwd=tmp_path)

    assert "kt adapter validate 'Bad Dir/adapter.toml'\n" in done.err


def test_a_file_that_is_there_is_left_alone(kt: Any, tmp_path: Path) -> None:
    (tmp_path / "adapter.toml").write_text("mine")

    done = kt("adapter", "new", str(tmp_path))

    assert (1, "") == (done.code, done.out)
    assert "there already" in done.err and "nothing was changed" in done.err
    assert "mine" == (tmp_path / "adapter.toml").read_text()


@pytest.mark.parametrize(
    "words", [("--kind", "Bad Kind"), ("--kind", "mock"), ("--exec", "./bot"), ("--colour",), ()]
)
def test_a_value_that_cannot_stand_there_is_wrong_use(
    kt: Any, tmp_path: Path, words: tuple[str, ...]
) -> None:
    folder = tmp_path / ("a" if words else "!!!")

    done = kt("adapter", "new", str(folder), *words)

    assert (2, "") == (done.code, done.out)
    assert not folder.exists()


def test_the_schema_is_printed_for_an_editor_to_read(kt: Any) -> None:
    done = kt("adapter", "schema")

    assert (0, json_schema.document()) == (done.code, json.loads(done.out))
    assert not kt.state.exists()
