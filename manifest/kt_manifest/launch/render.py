"""From a frozen adapter, resolved settings and the facts of a Run to what is started: pure, nothing is read or written.

What each key stands for is `delivery`'s, who sets a variable `environment`'s, what a file says `native_file`'s. What
the engine delivers itself (addresses, memory folder, placeholder key) wins over every setting.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kt_manifest.configuration.value_types import Value
from kt_manifest.contract.snapshot import Adapter, FlagTarget
from kt_manifest.launch import agent_home, environment, executable, native_file, placing, run_facts
from kt_manifest.launch.delivery import Delivery

RenderedFile = agent_home.RenderedFile
RenderRefused = agent_home.RenderRefused
MergedFile = native_file.MergedFile
MergeRefused = placing.MergeRefused
RunFacts = run_facts.RunFacts
write_files = placing.write_files
put_back = placing.put_back
find_executable = executable.find_executable
ExecutableMissing = executable.ExecutableMissing
NotExecutable = executable.NotExecutable
LOOPBACK = environment.LOOPBACK


class NothingToLaunch(Exception):
    """The kind has no program: it can be registered, and never started."""

    exit_code = 1

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.got = f"the kind {kind}, which launches nothing"
        self.wanted = "an agent with a program to start"
        self.do = "register an agent with --manifest, or with --kind command"
        super().__init__(f"cannot launch: got {self.got}, wanted {self.wanted}; {self.do}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What is started: `argv[0]` is a bare name or an absolute path; secrets do not show in a repr.

    `secret_texts` are the clear texts of all secrets that are delivered: whoever shows a launch masks them.
    """

    argv: tuple[str, ...] = field(repr=False)
    env: dict[str, str] = field(repr=False)
    files: tuple[RenderedFile, ...]
    merges: tuple[MergedFile, ...] = ()
    notices: tuple[str, ...]
    secret_texts: frozenset[str] = field(default=frozenset(), repr=False)


def render(adapter: Adapter, values: Mapping[str, Value], run: RunFacts) -> Launch:
    """Return the launch of one Run.

    Args:
        values: the effective settings by dotted key, secrets resolved (`secrets.resolve_all`). A key that the adapter
            maps nowhere is delivered nowhere.

    Raises:
        NothingToLaunch: the adapter has no start template.
        ReferenceRefused, ValueUnfit, ValueMissing: a setting cannot be delivered.
        RenderRefused: two values in one place of a file, or one that its format cannot say.
    """
    if adapter.start is None:
        raise NothingToLaunch(adapter.kind)
    delivery = Delivery(values, run, adapter.types)
    env, notices = environment.of(adapter, values, run, delivery)
    arguments: list[str] = []
    for rule in adapter.mapping:
        if isinstance(rule.target, FlagTarget) and (value := delivery.value(rule.key)) is not None:
            delivery.typed(rule.key)  # refuses what is not of the key's type
            arguments += _flag_tokens(rule.target.flag, value)
            if delivery.is_secret(rule.key):
                notices.append(_exposure(rule.key, rule.target.flag))
    files, merges = native_file.of(adapter, delivery, run)
    return Launch(
        argv=(adapter.start.exec, *adapter.start.args, *arguments),
        env=env,
        files=files,
        merges=merges,
        notices=tuple(notices),
        secret_texts=delivery.secret_texts(),
    )


def exposure(adapter: Adapter, key: str) -> str | None:
    """Return the warning for a secret at `key` that the adapter would put on a command line; None when it does not."""
    flags = [
        rule.target.flag
        for rule in adapter.mapping
        if rule.key == key and isinstance(rule.target, FlagTarget)
    ]
    return _exposure(key, flags[0]) if flags and key not in run_facts.ENGINE_KEYS else None


def _exposure(key: str, flag: str) -> str:
    return f"{key} carries a secret and is delivered as {flag}: other users can see it in the process list"


def _flag_tokens(flag: str, value: Value) -> list[str]:
    return [token for item in ([value] if isinstance(value, str) else value) for token in (flag, item)]
