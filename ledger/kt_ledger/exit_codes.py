"""The exit codes of `kt`, in one table: the frozen surface that scripts rely on.

The engine sends them with a refusal, the library's exceptions carry them, the command ends with them.
Source: the adapter contract, version 1 (docs/adapter-contract.md).
"""

import re

DONE = 0
FAILED = 1
USAGE = 2
NOT_FOUND = 3
WRONG_STATE = 4
UNSUPPORTED = 5
TIMED_OUT = 6
INTERRUPTED = 130  # not the contract's: 128 + SIGINT, as shells have it

MEANINGS: dict[int, str] = {
    DONE: "done; also when whoever read the output closed the pipe",
    FAILED: "failed: files, the ledger, a launch, an invalid manifest, a secret that cannot be resolved",
    USAGE: "wrong use: an unknown verb or flag, a bad or taken name, an unknown kind or key, a bad value",
    NOT_FOUND: "not found: no such agent, no adapter.toml",
    WRONG_STATE: "wrong state: not running, running and not forced, a stop that could not be confirmed",
    UNSUPPORTED: "unsupported: this agent, this system or this version cannot do that",
    TIMED_OUT: "timed out: the agent did not take its input in time",
    INTERRUPTED: "interrupted from the keyboard",
}
"""What each code says."""


def word(error: Exception) -> str:
    """Return the one word that tells a refusal from others of the same exit code: its own, or its class's name."""
    own = getattr(error, "code", None)
    return own if isinstance(own, str) else re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(error).__name__).lower()
