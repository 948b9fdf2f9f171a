"""When a question is answered without the engine, and when it is asked again: one judgement for both clients."""

from typing import Any

from kt_client import place, support
from kt_client.errors import EngineAway, EngineLost, KtError, NotFound
from kt_client.wire import Request
from kt_ledger.exit_codes import NOT_FOUND
from kt_ledger.layout import StateLayout


def without_engine(request: Request, files: StateLayout) -> Any:
    """Return the answer that needs no engine, None where it needs one.

    A state directory that was never used holds no agent: asking about one starts and makes nothing.

    Raises:
        KtError: `unused` is one. NotFound: exit 3, about an agent in such a place. Unsupported: exit 5, where no agent
            can run.
    """
    support.check()
    if request.about is None and request.unused is None:
        return None
    if not place.is_unused(files):
        return None
    if isinstance(request.unused, KtError):
        raise request.unused
    if request.about is None:
        return request.unused
    name = request.about
    raise NotFound(
        f"no agent named {name!r}: got a state directory that was never used ({files.root}), wanted one with "
        f"agents; register it with `kt agent register {name} ...`, or set {place.STATE_DIR}",
        exit_code=NOT_FOUND,
        code="not_found",
    )


def is_asked_again(request: Request, error: KtError) -> bool:
    """Tell whether to start an engine and ask again.

    A question that changes nothing is asked again where the engine died over it; an order never is.
    """
    return isinstance(error, EngineAway) or (isinstance(error, EngineLost) and request.changes_nothing)
