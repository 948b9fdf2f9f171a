"""`send` and `eof`: what may be sent to whom, and which way it takes.

"Delivered" says that the agent's pipe, or its server, took the bytes; what the agent makes of them nobody can know.
"""

from typing import Any

import aiohttp

from kt_ledger.exit_codes import FAILED, TIMED_OUT, UNSUPPORTED, WRONG_STATE
from kt_ledger.records import State
from kt_manifest.contract import capability
from kt_manifest.contract.snapshot import Adapter
from kt_supervisor.engine.instance.instance import Instance
from kt_supervisor.engine.output.agent_input import closed
from kt_supervisor.engine.problems import Refused
from kt_supervisor.engine.run.current_run import CurrentRun

WITHIN_S = 5.0
"""The contract's bound on one message."""

TAKING_INPUT = (State.RUNNING, State.PAUSED)


async def send(instance: Instance, message: bytes) -> dict[str, Any]:
    """Deliver one message; a newline is added where it has none.

    Raises:
        Refused: not running (4), no input declared (5), refused by the agent's server (1).
        NotTaken: not within five seconds (6).
    """
    current, adapter = await recipient(instance, "send")
    data = message if message.endswith(b"\n") else message + b"\n"
    if adapter.send_url is not None:
        await _post(instance.name, adapter.send_url, data)
    else:
        current.input.open()
        await current.input.write(data, within_s=WITHIN_S)
    how = "stdin" if adapter.send_url is None else "http"
    return {"name": instance.name, "bytes": len(data), "verdict": "delivered", "how": how}


async def end(instance: Instance) -> dict[str, Any]:
    """Close the agent's input, so that it reads an end. Raises Refused, KeeperGone."""
    current, adapter = await recipient(instance, "end the input of")
    if adapter.send_url is not None:
        raise unsupported(instance.name, "end the input of", "one that is sent to by HTTP")
    if current.link is None:
        raise closed()
    answer = await current.link.ask("eof")
    if not answer.get("ok"):
        raise unsupported(instance.name, "end the input of", f"a keeper that says {answer.get('error')}")
    current.input.close()
    return {"name": instance.name, "input": "closed"}


async def recipient(instance: Instance, verb: str) -> tuple[CurrentRun, Adapter]:
    """Return the Run that takes input now, and its adapter. Raises Refused."""
    row = await instance.row()
    adapter = Adapter.from_json(row.adapter)
    levels = capability.project(adapter.declaration, capability.this_os())
    if levels[capability.INTERACTION] is capability.Level.UNSUPPORTED:
        raise unsupported(instance.name, verb, "an agent that declares no interaction on this system")
    if row.state not in TAKING_INPUT or instance.current is None:
        raise Refused(
            f"cannot {verb} {instance.name}: got state {row.state}, wanted running or paused; "
            f"start it: kt agent start {instance.name}",
            code="not_running",
            exit_code=WRONG_STATE,
        )
    return instance.current, adapter


def unsupported(name: str, verb: str, got: str) -> Refused:
    """Return the refusal of what this agent cannot do."""
    return Refused(
        f"cannot {verb} {name}: got {got}, wanted one that reads its standard input; declare "
        "[capabilities.interaction] in its manifest (or --interactive), and register it again",
        code="unsupported",
        exit_code=UNSUPPORTED,
    )


async def _post(name: str, url: str, data: bytes) -> None:
    headers = {"content-type": "text/plain; charset=utf-8"}
    timeout = aiohttp.ClientTimeout(total=WITHIN_S)
    try:
        async with (
            aiohttp.ClientSession(trust_env=False, timeout=timeout) as session,
            session.post(url, data=data, headers=headers, allow_redirects=False) as answer,
        ):
            if not 200 <= answer.status < 300:
                raise _refused(name, url, f"status {answer.status}", exit_code=FAILED)
    except TimeoutError as error:
        raise _refused(name, url, f"no answer within {WITHIN_S:g} s", exit_code=TIMED_OUT) from error
    except aiohttp.ClientError as error:
        raise _refused(name, url, str(error) or type(error).__name__, exit_code=FAILED) from error


def _refused(name: str, url: str, got: str, *, exit_code: int) -> Refused:
    return Refused(
        f"cannot send to {name}: got {got} from {url}, wanted a 2xx status; it may have been taken all the same: "
        f"look with `kt agent logs {name}`",
        code="not_delivered",
        exit_code=exit_code,
    )
