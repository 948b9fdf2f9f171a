"""The exit codes that this room's refusals carry: the contract's, which the ledger's table has as well.

This room knows nothing of ours, so it has them a second time; a test compares. Source: docs/adapter-contract.md.
"""

DONE = 0
FAILED = 1
USAGE = 2
NOT_FOUND = 3
WRONG_STATE = 4
UNSUPPORTED = 5
TIMED_OUT = 6
