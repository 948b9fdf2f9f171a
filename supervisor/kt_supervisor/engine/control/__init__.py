"""The control API: HTTP with JSON over the engine's socket, one module a group of routes. Decides nothing."""
