"""Agents' own configuration files, one module a format."""
