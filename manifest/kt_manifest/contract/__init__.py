"""What an agent is: `adapter.toml`, its judgement, and what registration freezes of it."""
