"""The engine's start and end, under the names by which this room knows them (`kt_client.ignition`)."""

from kt_client.ignition import command as command
from kt_client.ignition import ensure as ensure
from kt_client.ignition import make_state_dir as make_state_dir
from kt_client.ignition import stop as stop
