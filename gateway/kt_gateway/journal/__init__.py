"""The gateway's own log: written here, durable before an answer ends."""
