import json
from typing import Any


def test_without_an_engine_it_looks_by_itself_and_starts_none(kt: Any) -> None:
    done = kt("doctor")
    as_json = json.loads(kt("doctor", "--json").out)

    assert 0 == done.code, done.out
    assert "sqlite" in done.out and "no engine was asked" in done.err
    assert as_json["engine"] is False
    assert not kt.state.exists()


def test_something_bad_is_exit_1_and_names_the_remedy(kt: Any) -> None:
    kt.client.engine_start()
    (kt.state / "secrets.toml").touch()
    (kt.state / "secrets.toml").chmod(0o644)

    asked, offline = kt("doctor", "--json"), kt("doctor", "--offline")

    assert (1, 1) == (asked.code, offline.code)
    document = json.loads(asked.out)
    assert (True, "bad") == (document["engine"], document["worst"])
    secrets = next(one for one in document["findings"] if one["check"] == "secrets")
    assert "chmod 0600" in secrets["do"]
    assert 0o644 == (kt.state / "secrets.toml").stat().st_mode & 0o777
