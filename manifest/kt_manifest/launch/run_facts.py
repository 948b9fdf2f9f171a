"""What the engine knows of the Run that it is about to start, and which unified keys it delivers itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kt_manifest.configuration import options

ENGINE_KEYS = frozenset({options.BASE_URL, options.ORIGIN, options.UPSTREAM_API_KEY, options.MEMORY_DIR})
"""Never taken from the settings: a hand-written one cannot lead past the meter, and the provider's key stays here."""

CARRY_A_TOKEN = frozenset({options.BASE_URL, options.ORIGIN, options.UPSTREAM_API_KEY})
"""Of these, the ones in which the token of a Run stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What the engine knows of the Run that it is about to start.

    Args:
        home: the Agent Home, absolute.
        base_environment: what is inherited of the environment of whoever asked for the start.
        metering_base_url, metering_origin: the instance's listener with and without the provider's path; None
            without a listener.
        placeholder_key: what the agent gets in place of the provider's key; None when its own key passes.
        memory_dir: the attached memory folder.
        secret_keys: the settings that were references before they were resolved.
        instance_name: with it, the agent gets `KT_INSTANCE` and `KT_RUN`.
    """

    home: Path
    base_environment: Mapping[str, str] = field(repr=False)
    metering_base_url: str | None = None
    metering_origin: str | None = None
    placeholder_key: str | None = field(default=None, repr=False)
    instance_id: str = ""
    instance_name: str = ""
    run_id: str = ""
    memory_dir: Path | None = None
    secret_keys: frozenset[str] = frozenset()

    def delivered(self) -> dict[str, str]:
        """Return the unified keys that the engine delivers itself."""
        facts = {
            options.BASE_URL: self.metering_base_url,
            options.ORIGIN: self.metering_origin,
            options.UPSTREAM_API_KEY: self.placeholder_key,
            options.MEMORY_DIR: None if self.memory_dir is None else str(self.memory_dir),
        }
        return {key: value for key, value in facts.items() if value is not None}
