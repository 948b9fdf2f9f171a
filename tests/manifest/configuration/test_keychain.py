"""The real package with a backend of the test's own: a file, one that hangs, one that fails."""

import json
import sys
import time
from pathlib import Path

import pytest

from kt_manifest.configuration import keychain, secrets
from kt_manifest.configuration.keychain import KeychainUnavailable

CANARY = "canary-keyring-40aa"
NO_WORKER = (sys.executable, "-c", "import sys; sys.exit(3)")


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return chosen("FileKeyring", tmp_path, monkeypatch)


def chosen(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", f"file_keyring.{name}")
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent}:{':'.join(sys.path)}")
    monkeypatch.setenv("KT_TEST_KEYRING", str(tmp_path / "keyring.json"))
    monkeypatch.setattr(keychain, "_rests_until", {})
    return tmp_path / "keyring.json"


def test_what_is_kept_is_found_under_our_service_and_forgotten(backend: Path) -> None:
    assert keychain.set("KEY", CANARY) is False
    assert keychain.set("KEY", CANARY + "2") is True
    found = keychain.find(["KEY", "OTHER"])
    held = json.loads(backend.read_text())

    assert {"KEY": CANARY + "2"} == found.found
    assert ({"KEY", "OTHER"}, None) == (found.asked, found.trouble)
    assert {"ktmeter/KEY": CANARY + "2"} == held
    assert CANARY not in repr(found)
    assert keychain.remove("KEY") is True
    assert keychain.remove("KEY") is False


def test_it_is_the_last_of_the_three_places(backend: Path, tmp_path: Path) -> None:
    backend.write_text(json.dumps({f"ktmeter/{name}": "from-keyring" for name in ("A", "B", "C")}))
    file = tmp_path / "secrets.toml"
    file.touch(mode=0o600)
    file.write_text('B = "from-file"\nA = "from-file"\n')

    found = secrets.resolve_all(
        {"x": "secret:A", "y": "secret:B", "z": "v ${secret:C}"}, environment={"A": "mine"}, secrets_file=file
    )

    assert {"x": "mine", "y": "from-file", "z": "v from-keyring"} == found.values
    assert {"A": "mine", "B": "from-file", "C": "from-keyring"} == found.secrets


def test_it_is_asked_once_for_all_names(
    backend: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.write_text(json.dumps({"ktmeter/A": "a-value", "ktmeter/B": "b-value"}))
    asked: list[list[str]] = []
    find = keychain.find
    monkeypatch.setattr(keychain, "find", lambda names: asked.append(list(names)) or find(names))

    secrets.resolve_all(
        {"x": "secret:A", "y": "secret:B"}, environment={}, secrets_file=tmp_path / "secrets.toml"
    )

    assert [["A", "B"]] == asked


def test_one_that_hangs_is_left_within_the_time_and_then_rests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen("HangingKeyring", tmp_path, monkeypatch)
    began_s = time.monotonic()

    first = keychain.find(["KEY"], timeout_s=1.5)
    second_s = time.monotonic()
    second = keychain.find(["KEY"], timeout_s=1.5)

    assert first.trouble is not None and "no answer within 1.5 s" in first.trouble
    assert second.trouble is not None and "not asked again for now" in second.trouble
    assert second_s - began_s < 10
    assert time.monotonic() - second_s < 0.5


def test_one_that_fails_tells_its_kind_and_nothing_that_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen("FailingKeyring", tmp_path, monkeypatch)

    found = keychain.find(["KEY"])
    with pytest.raises(KeychainUnavailable, match=r"keyring\.errors\.KeyringLocked") as caught:
        keychain.set("KEY", CANARY)

    assert found.trouble is not None and "KeyringLocked" in found.trouble
    assert (1, False) == (caught.value.exit_code, CANARY in str(caught.value))


def test_without_the_package_it_is_said_how_to_have_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(keychain, "is_installed", lambda: False)

    with pytest.raises(KeychainUnavailable, match=r"pip install 'ktmeter\[keyring\]'"):
        keychain.set("KEY", CANARY)
    with pytest.raises(secrets.SecretUnresolved, match="got none in the caller's environment"):
        secrets.resolve("secret:KEY", environment={}, secrets_file=tmp_path / "secrets.toml")


def test_a_helper_that_ends_without_an_answer_is_told() -> None:
    found = keychain.find(["KEY"], worker=NO_WORKER)

    assert found.trouble is not None and "ended with code 3" in found.trouble


def test_a_helper_that_is_not_there_is_told() -> None:
    found = keychain.find(["KEY"], worker=("/no/such/program",))

    assert found.trouble is not None and "No such file" in found.trouble


def test_nothing_waits_for_a_keyring_that_is_not_to_be_asked(backend: Path, tmp_path: Path) -> None:
    backend.write_text(json.dumps({"ktmeter/A": "a-value"}))

    with pytest.raises(secrets.SecretUnresolved, match="not looked at here"):
        secrets.resolve("secret:A", environment={}, secrets_file=tmp_path / "s.toml", keyring=False)
