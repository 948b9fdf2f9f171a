"""How much, and for how long: the journal's figures."""

SEGMENT_LIMIT_BYTES = 64 << 20
STUCK_AFTER_S = 5.0
"""A sync that takes longer makes the journal unhealthy."""
RETRY_EVERY_S = 0.5
IDLE_SYNC_S = 0.5
"""How long a record that nobody waits for may stay in the kernel's cache only."""
CLOSE_TIMEOUT_S = 5.0
