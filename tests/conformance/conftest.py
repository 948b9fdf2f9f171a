"""One engine for all that only needs one; adapters made of what matters to a test."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kt_conformance import fake_agent, subject
from kt_conformance.rig import Rig
from kt_conformance.subject import Subject

FAKE = str(Path(fake_agent.__file__))
LIAR = str(Path(__file__).with_name("liar.py"))


@pytest.fixture(scope="session")
def rig() -> Iterator[Rig]:
    with Rig() as one:
        yield one


@dataclass(frozen=True)
class Declared:
    """An adapter.toml as it will be written."""

    argv: Sequence[str]
    source: str = "self-reported"
    interaction: str = "unsupported"
    mapping: dict[str, str] = field(default_factory=dict)
    more: str = ""

    def text(self) -> str:
        rules = "".join(f'[config."{key}"]\n{target}\n' for key, target in self.mapping.items())
        return f"""
contract_version = "1.0.0"
[adapter]
kind = "under-test"
[lifecycle.start]
exec = {quoted(self.argv[0])}
args = [{", ".join(map(quoted, self.argv[1:]))}]
[capabilities.pause]
linux = "guaranteed"
macos = "guaranteed"
[capabilities.interaction]
linux = "{self.interaction}"
macos = "{self.interaction}"
[metering]
source = "{self.source}"
{rules}
{self.more}
"""

    def subject(self, folder: Path) -> Subject:
        path = folder / "adapter.toml"
        path.write_text(self.text())
        return subject.load(path)


def quoted(text: str) -> str:
    return "'''" + text + "'''"


def fake(*flags: str) -> tuple[str, ...]:
    return (sys.executable, "-u", FAKE, *flags)


def liar(name: str, *words: str) -> tuple[str, ...]:
    return (sys.executable, "-u", LIAR, name, *words)


OBSERVED = {
    "model": 'env = "OPENAI_MODEL"',
    "metering.base_url": 'env = "OPENAI_BASE_URL"',
    "metering.upstream_api_key": 'env = "OPENAI_API_KEY"',
}
