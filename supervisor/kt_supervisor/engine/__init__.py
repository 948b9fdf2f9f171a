"""The engine: one process per state directory that starts, adopts and stops agents, and owns the ledger.

Run as `python -m kt_supervisor.engine --state-dir DIR`; `control` lists its API, `engine` composes it.
"""
