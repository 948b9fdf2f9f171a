"""How agents are started, watched, fed and stopped."""
