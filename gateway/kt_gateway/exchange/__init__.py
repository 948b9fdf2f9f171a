"""One HTTP call, sans-io: fed heads, bodies and ends, it answers what to forward, what to hold and what to record."""
