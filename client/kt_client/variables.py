"""Which of a caller's variables cross the socket: those that the engine asks for by name, and no others.

The engine says what a start inherits, as names and beginnings of names, and which secrets the settings refer to
(`GET /v1/agents/NAME/environment`); the choice is made here, so that no other variable ever leaves this process.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kt_client import place
from kt_client.errors import KtError
from kt_client.wire import Request

NO_SUCH_CALL = "no_such_call"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """An order that takes variables, `question` whose answer says which, and what there is to choose from.

    `inherits`: what the agent inherits is wanted too, and not only secrets.
    """

    order: Request
    question: Request
    variables: Mapping[str, str] = field(repr=False)
    inherits: bool = True

    def with_all(self) -> Request:
        """Return the order as an engine wants it that cannot be asked, since it is an older one."""
        return self._carrying(dict(self.variables))

    def with_chosen(self, told: Mapping[str, Any]) -> Request:
        """Return the order with what was asked for."""
        return self._carrying(chosen(self.variables, told, inherits=self.inherits))

    def remarks(self, told: Mapping[str, Any]) -> list[str]:
        """Return what the engine would have said, had it seen the names of the variables that stay here."""
        remarks = told.get("remarks") or {}
        return (
            [str(remarks[name]) for name in sorted(remarks) if name in self.variables]
            if self.inherits
            else []
        )

    def _carrying(self, variables: dict[str, str]) -> Request:
        return replace(self.order, body={**(self.order.body or {}), "env": variables})


def offered(
    order: Request,
    env: Mapping[str, str] | None,
    *,
    inherits: bool = True,
    settings: Mapping[str, str] | None = None,
    purpose: str = "start",
) -> Offer:
    """Return an order about an agent that is to be asked with what is wanted of `env` (None: of this process's own).

    `settings` come with the order, and may refer to secrets as well. `purpose`: "start"; "restart", where the settings
    that came with the last start hold again; "run", what holds for the Run there is.
    """
    body = {"settings": dict(settings)} if settings else None
    target = f"{_agent(order.target)}/environment?for={purpose}"
    question = Request(method="GET", target=target, body=body, about=order.about)
    return Offer(
        order=order,
        question=question,
        variables=place.caller() if env is None else env,
        inherits=inherits,
    )


def _agent(target: str) -> str:
    """Return the path of whom a request is about: `/v1/agents/NAME`, or `/v1/config` for all agents."""
    parts = target.partition("?")[0].split("/")
    return "/".join(parts[: 4 if parts[2] == "agents" else 3])


def chosen(variables: Mapping[str, str], told: Mapping[str, Any], *, inherits: bool) -> dict[str, str]:
    """Return the variables that an answer asks for."""
    rule = told.get("inherit") or {}
    names = set(told.get("secrets") or ())
    beginnings: tuple[str, ...] = ()
    if inherits:
        names |= set(rule.get("names") or ())
        beginnings = tuple(rule.get("beginnings") or ())
    refused = set(rule.get("never_by_beginning") or ())
    endings = tuple(rule.get("never_by_beginning_with_ending") or ())
    never = tuple(rule.get("never_with_beginning") or ())

    def is_wanted(name: str) -> bool:
        if name in names:
            return True
        if not name.startswith(beginnings) or name.startswith(never):
            return False
        return name.upper() not in refused and not name.upper().endswith(endings)

    return {name: value for name, value in variables.items() if is_wanted(name)}


def is_older(error: KtError) -> bool:
    """Tell whether an engine does not know the question: it takes all variables, and filters them itself."""
    return error.code == NO_SUCH_CALL


def told_of(answer: dict[str, Any], remarks: list[str]) -> dict[str, Any]:
    """Return an answer with these remarks before its own."""
    return answer | {"notices": [*remarks, *answer.get("notices", ())]} if remarks else answer
