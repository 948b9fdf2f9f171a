"""The adapter under test: what is started of it in a section, the subject itself or, where it must be, the probe."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kt_conformance import delivery, fake_agent
from kt_manifest.contract import capability, manifest, snapshot
from kt_manifest.contract.snapshot import Adapter, EnvTarget, Rule, Shape, Template
from kt_manifest.contract.trial import Trial


@dataclass(frozen=True, slots=True)
class Subject:
    """An adapter that was judged and found good."""

    adapter: Adapter
    stand_in: tuple[str, ...] = ()

    @property
    def trial(self) -> Trial:
        """What the adapter says about being tested."""
        return self.adapter.trial

    @property
    def observed(self) -> bool:
        """Whether the engine counts its tokens."""
        return self.adapter.metering_source == snapshot.ENGINE_OBSERVED

    @property
    def led(self) -> bool:
        """Whether the adapter tells its agent where the listener is."""
        return bool(self.rules_for("metering.base_url") or self.rules_for("metering.origin"))

    def rules_for(self, key: str) -> list[Rule]:
        """Return the rules that deliver a setting (`delivery.rules_for`)."""
        return delivery.rules_for(self.adapter.mapping, key)

    def level(self, name: str) -> capability.Level:
        """Return how well a capability is declared on this system."""
        return capability.project(self.adapter.declaration, capability.this_os())[name]

    def itself(self, *more: str) -> Adapter:
        """Return the adapter with the arguments that tests add to its start."""
        start = self.adapter.start
        assert start is not None, "judged: a manifest has a start"
        return replace(self.adapter, start=replace(start, args=(*start.args, *self.trial.args, *more)))

    def probe(self, *flags: str) -> Adapter:
        """Return the adapter with the fake agent in the place of its program: its mapping and its levels stay."""
        words = ("-u", str(Path(fake_agent.__file__)), *flags, *self._where_to_call())
        env = self.adapter.start.env if self.adapter.start else {}
        return replace(
            self.adapter,
            start=Template(exec=sys.executable, args=words, env=env),
            stop=None,
            pause=None,
            resume=None,
            ready=None,
            send_url=None,
        )

    def _where_to_call(self) -> list[str]:
        """Return how the fake agent finds what this adapter puts into variables."""
        flags = {
            "metering.base_url": "--base-url-env",
            "metering.upstream_api_key": "--key-env",
            "model": "--model-env",
        }
        found = []
        for rule in self.adapter.mapping:
            if rule.key in flags and isinstance(rule.target, EnvTarget) and rule.shape == Shape():
                found += [flags.pop(rule.key), rule.target.name]
        return found

    @property
    def probe_can_call(self) -> bool:
        """Whether the fake agent can be told the listener's address as this adapter tells it."""
        return any(
            rule.key == "metering.base_url" and isinstance(rule.target, EnvTarget) and rule.shape == Shape()
            for rule in self.adapter.mapping
        )


CRASH_ADVICE = (
    "; it was started with [kt.test] crash: the failure has to come after readiness ([kt.ready]; without it, 300 ms), "
    "so have the agent fail a second after it is ready"
)
"""What to say where a subject that is to fail by itself does not even start."""


def load(path: Path, *, program: str | None = None, arguments: Sequence[str] = ()) -> Subject:
    """Return the subject that a manifest describes.

    Args:
        path: the adapter.toml, or its folder.
        program: what to start in the place of the adapter's own program; a relative path is taken from here.
        arguments: what to give to it, before the adapter's own arguments.

    Raises:
        ManifestNotFound, ManifestUnreadable, ManifestInvalid, ContractIncompatible: as `kt agent register`.
    """
    adapter = manifest.load(path)
    assert adapter.start is not None, "judged: a manifest has a start"
    if program is None and not arguments:
        return Subject(adapter)
    chosen = program or adapter.start.exec
    if "/" in chosen and not chosen.startswith("/"):
        chosen = str(Path.cwd() / chosen)
    start = replace(adapter.start, exec=chosen, args=(*arguments, *adapter.start.args))
    return Subject(replace(adapter, start=start), (chosen, *arguments))
