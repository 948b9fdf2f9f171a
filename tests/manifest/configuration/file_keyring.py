"""A keyring backend for tests, chosen with PYTHON_KEYRING_BACKEND: a JSON file, or one that hangs or fails."""

import json
import os
import threading
from pathlib import Path

import keyring.backend
import keyring.errors


class FileKeyring(keyring.backend.KeyringBackend):
    """Keeps passwords where KT_TEST_KEYRING says."""

    priority = 1.0

    def _read(self) -> dict[str, str]:
        path = Path(os.environ["KT_TEST_KEYRING"])
        return json.loads(path.read_text()) if path.exists() else {}

    def _write(self, held: dict[str, str]) -> None:
        Path(os.environ["KT_TEST_KEYRING"]).write_text(json.dumps(held))

    def get_password(self, service: str, username: str) -> str | None:
        return self._read().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self._write(self._read() | {f"{service}/{username}": password})

    def delete_password(self, service: str, username: str) -> None:
        held = self._read()
        del held[f"{service}/{username}"]
        self._write(held)


class HangingKeyring(FileKeyring):
    """Never answers, like a bus without its other end."""

    def get_password(self, service: str, username: str) -> str | None:
        threading.Event().wait(60)
        return None


class FailingKeyring(FileKeyring):
    """Complains, and quotes what it was given."""

    def get_password(self, service: str, username: str) -> str | None:
        raise keyring.errors.KeyringLocked(f"locked: {username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        raise keyring.errors.PasswordSetError(f"no: {password}")
