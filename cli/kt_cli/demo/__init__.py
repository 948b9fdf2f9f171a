"""The demo: a local provider, small agents, and the traffic they replay."""
