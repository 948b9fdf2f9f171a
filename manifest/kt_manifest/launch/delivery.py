"""What each unified key stands for in one Run, once `${key}` references between settings are resolved. Pure.

What was a secret is final: its text may hold anything, and is not looked at for references. What the engine delivers
itself is final too. A setting that leads to either through a reference counts as a secret itself.
"""

from collections.abc import Mapping
from typing import Any

from kt_manifest import exit_codes, words
from kt_manifest.configuration import clear_keys, secrets
from kt_manifest.configuration.value_types import Value
from kt_manifest.contract.snapshot import Rule
from kt_manifest.launch import references, template, typed_value
from kt_manifest.launch.native.tree import MISSING
from kt_manifest.launch.references import Malformed, Reference
from kt_manifest.launch.run_facts import CARRY_A_TOKEN, ENGINE_KEYS, RunFacts

LIMIT_CHARS = 4 * 1024 * 1024
"""How long a text may become: a few settings that name each other twice would double it each time."""
LIMIT_CHAIN = 32


class ReferenceRefused(Exception):
    """A `${key}` in a setting leads nowhere, or back to itself; `chain` is how one got there."""

    exit_code = exit_codes.FAILED

    def __init__(self, chain: tuple[str, ...], *, got: str, wanted: str) -> None:
        self.chain = chain
        self.got = got
        self.wanted = wanted
        self.do = "correct the setting; $${ writes a ${ itself"
        way = " -> ".join(words.shown(key)[1:-1] for key in chain)
        super().__init__(f"cannot resolve {way}: got {got}, wanted {wanted}; {self.do}")


class ValueUnfit(Exception):
    """A setting is not of the type with which the adapter hands it to the agent; a secret's value is not told."""

    exit_code = exit_codes.FAILED

    def __init__(self, key: str, *, got: str, wanted: str) -> None:
        self.key = key
        self.got = got
        self.wanted = wanted
        self.do = f"set {words.shown(key)[1:-1]} to one that is"
        super().__init__(f"cannot deliver {words.shown(key)[1:-1]}: got {got}, wanted {wanted}; {self.do}")


class ValueMissing(Exception):
    """A template needs a setting that has no value."""

    exit_code = exit_codes.FAILED

    def __init__(self, rule_key: str, missing: str) -> None:
        self.key = missing
        self.got = f"no value for {words.shown(missing)[1:-1]}"
        self.wanted = (
            f"one, since the adapter's template for {words.shown(rule_key)[1:-1]} needs it inside a text"
        )
        self.do = f"set {words.shown(missing)[1:-1]}"
        super().__init__(f"cannot fill a template: got {self.got}, wanted {self.wanted}; {self.do}")


class Delivery:
    """The values of one Run by unified key; nothing outside it is changed, and no value shows in a repr."""

    __slots__ = ("_given", "_known", "_run", "_secret", "_types")

    def __init__(self, values: Mapping[str, Value], run: RunFacts, types: Mapping[str, str]) -> None:
        settings = {key: value for key, value in values.items() if key not in ENGINE_KEYS}
        self._given: dict[str, Value] = {**settings, **run.delivered()}
        self._run = run
        self._types = types
        self._known: dict[str, Value] = {}
        self._secret: set[str] = {
            *CARRY_A_TOKEN,
            *run.secret_keys,
            *(key for key, value in settings.items() if clear_keys.is_clear(key, value)),
        }

    def value(self, key: str) -> Value | None:
        """Return what a key stands for, None where it has no value. Raises ReferenceRefused."""
        return self._resolve(key, ()) if key in self._given else None

    def text(self, key: str) -> str | None:
        """Return it as one text, a list as a shell would read it."""
        value = self.value(key)
        return None if value is None else typed_value.as_text(value)

    def typed(self, key: str) -> Any:
        """Return it with the type that the adapter declares; MISSING without a value. Raises ValueUnfit."""
        value = self.value(key)
        if value is None:
            return MISSING
        type_ = self._types.get(key)
        try:
            return typed_value.convert(type_, value)
        except typed_value.Unfit:
            wanted = f'{typed_value.WANTED[str(type_)]} (type = "{type_}")'
            got = "a secret (not shown)" if self.is_secret(key) else words.shown(value)
            raise ValueUnfit(key, got=got, wanted=wanted) from None

    def is_secret(self, key: str) -> bool:
        """Tell whether the value of a key is a secret, or holds one through a reference."""
        self.value(key)
        return key in self._secret

    def filled(self, rule: Rule) -> Any:
        """Return a rule's template filled in, MISSING where it comes to nothing.

        Raises:
            ValueMissing, ValueUnfit, ReferenceRefused.
        """
        assert rule.shape.template is not None, "the caller has looked"
        format_ = rule.shape.format
        try:
            return template.fill(format_, template.read(format_, rule.shape.template), self)
        except template.Unset as error:
            raise ValueMissing(rule.key, error.key) from None
        except template.TwoOfOneName:
            got, wanted = "one name twice in a table of its template", "a name of its own for each"
            raise ValueUnfit(rule.key, got=got, wanted=wanted) from None

    def secret_texts(self) -> frozenset[str]:
        """Return the clear texts of the secrets that were asked for so far; the whole, and each item of a list."""
        found: set[str] = set()
        for key, value in self._known.items():
            if key in self._secret:
                found |= {typed_value.as_text(value), *(value if isinstance(value, list) else ())}
        return frozenset(found - {""})

    def _resolve(self, key: str, above: tuple[str, ...]) -> Value:
        if key in self._known:
            return self._known[key]
        given = self._as_written(key)
        if not self._is_final(key, given):
            chain = (*above, key)
            if len(chain) > LIMIT_CHAIN:
                raise ReferenceRefused(
                    chain, got="too long a chain", wanted=f"at most {LIMIT_CHAIN} settings in it"
                )
            texts = [self._text(text, chain) for text in ([given] if isinstance(given, str) else given)]
            given = texts[0] if isinstance(given, str) else texts
        self._known[key] = given
        return given

    def _as_written(self, key: str) -> Value:
        written = self._run.written.get(key)
        inside = written is not None and key in self._run.secret_keys and not secrets.is_reference(written)
        return written if inside and written is not None and self._run.secrets else self._given[key]

    def _is_final(self, key: str, given: Value) -> bool:
        if key in ENGINE_KEYS or (key in self._run.secret_keys and given is self._given[key]):
            return True
        return not any(map(references.are_in, [given] if isinstance(given, str) else given))

    def _text(self, text: str, chain: tuple[str, ...]) -> str:
        try:
            found = references.parts(text)
        except Malformed as error:
            raise ReferenceRefused(chain, got=str(error), wanted="${key}") from None
        texts = [part if isinstance(part, str) else self._replaced(part, chain) for part in found]
        if sum(map(len, texts)) > LIMIT_CHARS:
            raise ReferenceRefused(
                chain, got="a text that becomes too long", wanted=f"at most {LIMIT_CHARS} characters"
            )
        return "".join(texts)

    def _replaced(self, reference: Reference, chain: tuple[str, ...]) -> str:
        key = reference.key
        if references.is_secret(key):
            # Without a value it was an escape, which whoever resolves secrets has undone.
            return self._run.secrets.get(key.removeprefix(secrets.PREFIX), f"${{{key}}}")
        if fault := references.fault_in_key(key):
            raise ReferenceRefused((*chain, key), got=fault, wanted="a key of docs/configuration.md")
        if key in chain:
            raise ReferenceRefused((*chain, key), got="a circle", wanted="a chain that ends")
        if key not in self._given:
            raise ReferenceRefused((*chain, key), got=f"no value for {key}", wanted="a key that has one")
        value = typed_value.as_text(self._resolve(key, chain))
        if key in self._secret:
            self._secret.add(chain[-1])
        return value
