"""Values that live elsewhere: each reference (`secret_syntax`) stands for what the first of three places holds.

They are the variables of whoever asks for a start, the file `secrets.toml`, and the keyring of the operating system. A
clear value is returned and never kept, logged, shown or named in an error. Resolved at each start, so a rotated secret
needs nothing but a restart.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from kt_manifest import exit_codes, words
from kt_manifest.configuration import keychain, secret_syntax
from kt_manifest.configuration import secrets_file as file_of_secrets
from kt_manifest.configuration.value_types import Value

PREFIX = secret_syntax.PREFIX
MASK = secret_syntax.MASK
is_reference = secret_syntax.is_reference
refers = secret_syntax.refers
names = secret_syntax.names
mask = secret_syntax.mask


class SecretUnresolved(Exception):
    """A secret that is referred to is found nowhere; its name is told, and what is wrong with a place; never a value.

    `tried` are the places that hold something unusable or cannot be looked at; empty where none has an entry.
    """

    exit_code = exit_codes.FAILED

    def __init__(self, name: str, tried: tuple[str, ...]) -> None:
        self.name = name
        self.tried = tried
        shown = words.shown(name)[1:-1]
        self.got = "; ".join(tried) or "none in the caller's environment, secrets.toml or the keyring"
        self.wanted = f"a value for {PREFIX}{shown}"
        self.do = f"`kt secret set {shown}`, or start with the variable {shown}"
        super().__init__(f"unresolved secret: wanted {self.wanted}, got {self.got}; {self.do}")


@dataclass(frozen=True, slots=True)
class Resolved:
    """Settings in clear text, which of their keys were references, and what these stood for; no value in a repr."""

    values: dict[str, Value] = field(repr=False)
    secret_keys: frozenset[str]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


class Vault:
    """The three places, as they are at this moment; each is looked at once, and only when a name needs it.

    Args:
        environment: the variables of whoever asks for the start; an empty one counts as unset.
        secrets_file: refused when group or others have any permission, or when it belongs to another user. Entries
            that are not text, or empty, count as absent.
        also: further names that are going to be asked for, so that the keyring is asked for all of them at once.
        keyring: whether it is asked at all: that takes a process, and may take seconds.
    """

    def __init__(
        self,
        *,
        environment: Mapping[str, str],
        secrets_file: Path,
        also: Iterable[str] = (),
        keyring: bool = True,
    ) -> None:
        self._environment = environment
        self._path = secrets_file
        self._also = frozenset(also)
        self._keyring = keyring
        self._file: Mapping[str, object] | str | None = None
        self._keychain: keychain.Answer | None = None
        self.found: dict[str, str] = {}

    def find(self, name: str) -> str:
        """Return the clear text of a secret. Raises SecretUnresolved where no place has it."""
        if name in self.found:
            return self.found[name]
        tried: list[str] = []
        for source in (self._from_environment, self._from_file, self._from_keychain):
            answer = source(name)
            if isinstance(answer, _Found):
                self.found[name] = answer.text
                return answer.text
            if answer is not None:
                tried.append(answer)
        raise SecretUnresolved(name, tuple(tried))

    # Each answers None where there is no entry, and a text where there is one that is of no use, or nobody knows.
    def _from_environment(self, name: str) -> "_Found | str | None":
        return _usable(self._environment.get(name, ""), "a variable of the caller's environment that")

    def _from_file(self, name: str) -> "_Found | str | None":
        if self._file is None:
            self._file = file_of_secrets.read(self._path)
        if isinstance(self._file, str):
            return self._file
        value = self._file.get(name)
        if name not in self._file or value == "":
            return None
        if not isinstance(value, str):
            return f"an entry in {self._path.name} that is no text"
        return _usable(value, f"an entry in {self._path.name} that")

    def _from_keychain(self, name: str) -> "_Found | str | None":
        if not self._keyring:
            return "the keyring is not looked at here"
        if self._keychain is None or name not in self._keychain.asked:
            missing = {one for one in self._also if not isinstance(self._from_environment(one), _Found)}
            missing = {one for one in missing if not isinstance(self._from_file(one), _Found)}
            self._keychain = keychain.find(sorted(missing | {name}))
        if self._keychain.trouble is not None:
            return self._keychain.trouble if self._keychain.is_there else None
        return _usable(self._keychain.found.get(name, ""), "an entry in the keyring that")


def resolve[Kind: (str, Value)](
    value: Kind, *, environment: Mapping[str, str], secrets_file: Path, keyring: bool = True
) -> Kind:
    """Return the clear text of a value: its references resolved (`Vault` has the arguments).

    Raises:
        SecretUnresolved: no place has one of them.
    """
    vault = Vault(
        environment=environment,
        secrets_file=secrets_file,
        also=secret_syntax.names_in(value),
        keyring=keyring,
    )
    return secret_syntax.expand(value, vault.find)


def resolve_all(
    settings: Mapping[str, Value],
    *,
    environment: Mapping[str, str],
    secrets_file: Path,
    missing: list[SecretUnresolved] | None = None,
) -> Resolved:
    """Return all settings with their references resolved.

    Args:
        missing: what is found nowhere is added here, once, and `MASK` stands for it: only for showing.

    Raises:
        SecretUnresolved: the first that is found nowhere, without `missing`.
    """
    vault = Vault(environment=environment, secrets_file=secrets_file, also=names(settings.values()))

    def find(name: str) -> str:
        try:
            return vault.find(name)
        except SecretUnresolved as error:
            if missing is None:
                raise
            missing.append(error)
            return vault.found.setdefault(name, MASK)

    values = {key: secret_syntax.expand(value, find) for key, value in settings.items()}
    keys = frozenset(key for key, value in settings.items() if refers(value))
    return Resolved(values, keys, dict(vault.found))


def find_all(wanted: Iterable[str], *, environment: Mapping[str, str], secrets_file: Path) -> dict[str, str]:
    """Return those of these secrets that are found somewhere, by name; nobody is told of the others."""
    names = sorted(set(wanted))
    vault = Vault(environment=environment, secrets_file=secrets_file, also=names)
    for name in names:
        try:
            vault.find(name)
        except SecretUnresolved:
            continue
    return dict(vault.found)


def mask_address(url: Value) -> Value:
    """Return what may be shown of a listener's address, whose first path segment is the token of its Run."""
    if not isinstance(url, str):
        return url
    parts = urlsplit(url)
    _, slash, rest = parts.path.partition("/")
    _, more, rest = rest.partition("/")
    return f"{parts.scheme}://{parts.netloc}{slash}{'****' if slash else ''}{more}{rest}"


@dataclass(frozen=True, slots=True)
class _Found:
    text: str = field(repr=False)


def _usable(text: str, where: str) -> _Found | str | None:
    if not text:
        return None
    fault = words.fault_in_value(text)
    return f"{where} holds {fault}" if fault else _Found(text)
