"""The engine's socket, under the name by which this room knows it: `kt_client.link` is the one implementation."""

from kt_client.errors import ENGINE_LOST as ENGINE_LOST
from kt_client.errors import EngineAway as EngineAway
from kt_client.link import Link as Link
from kt_client.wire import ANSWER_TIMEOUT_S as ANSWER_TIMEOUT_S
