"""What is told: documents of list, show and usage, events, hooks, calls as they end."""
