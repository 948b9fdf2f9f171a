"""The exit codes of `kt`, in one table: the frozen surface that scripts rely on.

Source: the adapter contract, version 1 (docs/adapter-contract.md); `INTERRUPTED` is the shell's own convention
(128 + SIGINT).
"""

DONE = 0
FAILED = 1
USAGE = 2
NOT_FOUND = 3
WRONG_STATE = 4
UNSUPPORTED = 5
TIMED_OUT = 6
INTERRUPTED = 130

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
