"""Which secrets there are, told from files alone."""

from pathlib import Path

import pytest

from kt_cli import secret_places
from kt_ledger.layout import StateLayout
from kt_manifest.configuration import config_file, keychain, secrets_file
from kt_manifest.configuration.secrets_file import SecretsFileUnusable


@pytest.fixture
def files(tmp_path: Path) -> StateLayout:
    layout = StateLayout(tmp_path)
    for name in ("bot", "gone"):
        layout.home(name).mkdir(parents=True)
    config_file.set(layout.home("bot") / "config.toml", "agent.A", "x ${secret:KEPT} ${secret:NOWHERE}")
    config_file.set(layout.home("bot") / "config.toml", "metering.upstream_api_key", "secret:KEPT")
    config_file.set(layout.home("gone") / "config.toml", "agent.A", "secret:OF_GONE")
    config_file.set(layout.root / "config.toml", "agent.B", "secret:TYPED")
    secrets_file.set(layout.secrets, "KEPT", "canary-one")
    secrets_file.set(layout.secrets, "UNUSED", "canary-two")
    return layout


def test_each_is_told_with_its_places_and_users_and_without_its_value(files: StateLayout) -> None:
    found = secret_places.look(
        files, {"TYPED": "canary-three", "OTHER": "x"}, registered=frozenset({"bot", "new"})
    )

    both = {"name": "bot", "keys": ["agent.A", "metering.upstream_api_key"], "at_once": True}
    one = {"name": "bot", "keys": ["agent.A"], "at_once": False}
    fleet = {"name": "(fleet)", "keys": ["agent.B"], "at_once": False}
    assert [
        {
            "name": "KEPT",
            "found_in": ["secrets.toml"],
            "wins": "secrets.toml",
            "differ": False,
            "agents": [both],
            "missing": False,
        },
        {"name": "NOWHERE", "found_in": [], "wins": None, "differ": False, "agents": [one], "missing": True},
        {
            "name": "TYPED",
            "found_in": ["environment"],
            "wins": "environment",
            "differ": False,
            "agents": [fleet],
            "missing": False,
        },
        {
            "name": "UNUSED",
            "found_in": ["secrets.toml"],
            "wins": "secrets.toml",
            "differ": False,
            "agents": [],
            "missing": False,
        },
    ] == found["secrets"]
    assert "canary" not in str(found)


def test_where_nobody_says_who_is_registered_every_home_counts(files: StateLayout) -> None:
    found = secret_places.look(files, {}, registered=None)

    assert "OF_GONE" in {entry["name"] for entry in found["secrets"]}


def test_the_keyring_is_asked_for_what_is_referred_to(
    files: StateLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = keychain.Answer(frozenset({"NOWHERE"}), {"NOWHERE": "canary-four"})
    monkeypatch.setattr(keychain, "find", lambda names: held)

    found = secret_places.look(files, {}, registered=None)

    [nowhere] = [entry for entry in found["secrets"] if entry["name"] == "NOWHERE"]
    assert (["keyring"], False, "ok") == (nowhere["found_in"], nowhere["missing"], found["keyring"])


def test_a_file_that_makes_no_sense_is_a_notice_and_the_rest_is_told(files: StateLayout) -> None:
    (files.home("bot") / "config.toml").write_text("[[[")
    files.secrets.write_text('NUMBER = 3\nKEPT = "canary-one"\n')

    found = secret_places.look(files, {}, registered=None)

    assert any("what bot refers to is not known" in notice for notice in found["notices"])
    assert any("NUMBER" in notice and "absent" in notice for notice in found["notices"])
    assert {"KEPT", "TYPED", "OF_GONE"} == {entry["name"] for entry in found["secrets"]}


def test_a_file_of_secrets_that_may_not_be_used_is_an_error(files: StateLayout) -> None:
    files.secrets.chmod(0o644)

    with pytest.raises(SecretsFileUnusable, match="chmod 600"):
        secret_places.look(files, {}, registered=None)


def test_a_place_that_was_never_used_has_none(tmp_path: Path) -> None:
    found = secret_places.look(StateLayout(tmp_path / "none"), {}, registered=None)

    assert ([], []) == (found["secrets"], found["notices"])
