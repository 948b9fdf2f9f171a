"""The kinds of agent that are built in, and need no manifest."""

from collections.abc import Sequence
from pathlib import Path

from kt_manifest import exit_codes, nearest, words
from kt_manifest.contract import snapshot
from kt_manifest.contract.capability import Declaration, Level, Support
from kt_manifest.contract.snapshot import Adapter, EnvTarget, Rule, Template

MOCK = "mock"
COMMAND = "command"
BUILTIN: frozenset[str] = frozenset({MOCK, COMMAND})

_UNIX_GUARANTEED = Support(linux=Level.GUARANTEED, macos=Level.GUARANTEED)
_EVERYWHERE = Support(linux=Level.GUARANTEED, macos=Level.GUARANTEED, windows=Level.GUARANTEED)
_OBSERVED = (
    Rule("metering.base_url", EnvTarget("OPENAI_BASE_URL")),  # openai-python >= 1, openai-node >= 4
    Rule("metering.base_url", EnvTarget("OPENAI_API_BASE")),  # openai-python 0.x, LangChain, Aider
    Rule(
        "metering.upstream_api_key", EnvTarget("OPENAI_API_KEY")
    ),  # a placeholder arrives there, never the key
)


class UnknownKind(Exception):
    """There is no built-in kind of this name."""

    exit_code = exit_codes.USAGE

    def __init__(self, got: str) -> None:
        self.got = got
        self.wanted = f"one of the built-in kinds {', '.join(sorted(BUILTIN))}"
        self.do = f"{nearest.suggestion(got, BUILTIN)}; any other agent is registered with --manifest"
        super().__init__(f"unknown kind: got {words.shown(got)}, wanted {self.wanted}; {self.do}")


class CommandInvalid(Exception):
    """What follows `--` is no command that an agent could be started with."""

    exit_code = exit_codes.USAGE

    def __init__(self, got: str) -> None:
        self.got = got
        self.wanted = "a program name or an absolute path, then its arguments"
        self.do = "write it after two dashes: kt agent register NAME --kind command -- PROGRAM ARGUMENTS"
        super().__init__(f"invalid command: got {got}, wanted {self.wanted}; {self.do}")


def builtin(kind: str) -> Adapter:
    """Return the adapter of a built-in kind that needs nothing else.

    Raises:
        UnknownKind: it is not built in.
        CommandInvalid: it is `command`, which needs a command: see `command`.
    """
    if kind == MOCK:
        return _mock()
    if kind == COMMAND:
        return command((), interactive=False, observe=False)
    raise UnknownKind(kind)


def command(argv: Sequence[str], *, interactive: bool, observe: bool, cwd: Path | None = None) -> Adapter:
    """Return the adapter for a command line that somebody typed.

    Args:
        argv: the program, a bare name or an absolute path, and its arguments.
        interactive: the program reads its standard input.
        observe: the engine meters its traffic, through the variables that OpenAI's clients read; else it reports.
        cwd: the folder in which the command was typed; a relative program with a slash is taken from there, since the
            agent will run in its Agent Home. Without it such a program is refused.

    Raises:
        CommandInvalid: no program, or one that cannot be named so.
    """
    words_typed = tuple(argv)
    _refuse_unusable(words_typed)
    program = words_typed[0]
    if cwd is not None and "/" in program and not program.startswith("/"):
        program = str(cwd / program)
    if fault := snapshot.fault_in_exec(program):
        raise CommandInvalid(fault)
    return Adapter(
        kind=COMMAND,
        start=Template(exec=program, args=words_typed[1:]),
        declaration=Declaration(
            pause=_UNIX_GUARANTEED, interaction=_EVERYWHERE if interactive else Support()
        ),
        metering_source=snapshot.ENGINE_OBSERVED if observe else snapshot.SELF_REPORTED,
        mapping=_OBSERVED if observe else (),
    )


def _refuse_unusable(argv: tuple[str, ...]) -> None:
    if not argv:
        raise CommandInvalid("no program")
    for argument in argv:
        if fault := words.fault_in_value(argument):
            raise CommandInvalid(f"an argument with {fault}")


def _mock() -> Adapter:
    return Adapter(
        kind=MOCK,
        display_name="Mock",
        declaration=Declaration(
            pause=Support(linux=Level.GUARANTEED, macos=Level.GUARANTEED, windows=Level.BEST_EFFORT),
            interaction=_EVERYWHERE,
        ),
        metering_source=snapshot.SELF_REPORTED,
        mapping=(Rule("model", EnvTarget("MODEL")), Rule("memory.dir", EnvTarget("KTESIO_MEMORY_DIR"))),
    )
