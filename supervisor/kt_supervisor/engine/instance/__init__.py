"""Instances: the fleet, one agent's verbs, its lifecycle as a table, and what starts, pauses and brings it back."""
