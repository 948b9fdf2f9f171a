"""Property tests here touch disks on a shared machine: their examples have no deadline of their own."""

from hypothesis import settings

settings.register_profile("ledger", deadline=None)
settings.load_profile("ledger")
