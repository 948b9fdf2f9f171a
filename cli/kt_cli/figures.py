"""How usage is written: known figures as they are, `≥` where a part is missing, `—` where nothing is known.

Laws: an unknown figure is never 0; dollars that are not there are not shown; calls that could not be measured are
always counted in the open.
"""

from collections.abc import Mapping
from typing import Any

ABSENT = "—"
AT_LEAST = "≥ "
ESTIMATED = "(estimated)"


def tokens(view: Mapping[str, Any], prefix: str, *, known: str, unmeasured: int) -> str:
    """Return the tokens of one scope as one text.

    Args:
        view: an object of the engine with `<prefix>_input_tokens` and its kin.
        prefix: "cumulative", "current_run" or "total".
        known: the contract's `usage_known`: none, partial or all.
        unmeasured: how many calls of that scope nobody could count.
    """
    rest = f"+{plural(unmeasured, 'unmeasured call')}" if unmeasured else ""
    if known == "none":
        return f"{ABSENT} ({rest})" if rest else ABSENT
    text = f"in {grouped(view.get(f'{prefix}_input_tokens'))} / out {grouped(view.get(f'{prefix}_output_tokens'))}"
    if (cached := view.get(f"{prefix}_cached_tokens")) is not None:
        text += f" / cached {grouped(cached)}"
    if (dollars := view.get(f"{prefix}_dollars")) is not None:
        text += f" · {money(dollars)}"
    return (AT_LEAST if known == "partial" else "") + text + (f" ({rest})" if rest else "")


def usage(view: Mapping[str, Any], scope: str) -> str:
    """Return one scope ("cumulative" or "current_run") of a UsageView."""
    known = view.get(f"{scope}_usage_known", view.get("usage_known", "all"))
    unmeasured = view.get(f"{scope}_unmeasured_calls")
    if unmeasured is None:
        unmeasured = view.get("unmeasured_calls", 0) if scope == "cumulative" else 0
    return tokens(view, scope, known=str(known), unmeasured=int(unmeasured))


def totals(view: Mapping[str, Any]) -> str:
    """Return the line under the fleet's table: `Fleet total: ...`."""
    line = tokens(
        {key: value for key, value in view.items() if key != "total_dollars"},
        "total",
        known=str(view.get("usage_known", "all")),
        unmeasured=int(view.get("unmeasured_calls", 0)),
    )
    dollars = view.get("total_dollars")
    if dollars is None:
        return f"Fleet total: {line} · {ABSENT} (no rate is configured)"
    unpriced = int(view.get("unpriced_count", 0))
    label = f"estimated; {plural(unpriced, 'instance')} unpriced" if unpriced else "estimated"
    return f"Fleet total: {line} · ≈ {money(dollars)} ({label})"


def cost(view: Mapping[str, Any], scope: str) -> str:
    """Return the dollars of one scope of a UsageView, or the dash with the reason."""
    dollars = view.get(f"{scope}_dollars")
    return f"{ABSENT} (no rate is configured)" if dollars is None else f"{money(dollars)} {ESTIMATED}"


def budget(view: Mapping[str, Any] | None) -> str:
    """Return a BudgetView in one text; a dash where no limit is set."""
    if not view:
        return ABSENT
    parts = []
    for scope, word in (("per_run", "run"), ("cumulative", "cum")):
        if (limit := view.get(f"{scope}_limit")) is not None:
            parts.append(f"{word} {grouped(view.get(f'{scope}_remaining'))}/{grouped(limit)} tok")
        if (cap := view.get(f"{scope}_cost_cap")) is not None:
            left = view.get(f"{scope}_dollars_remaining")
            parts.append(f"{word} {ABSENT if left is None else money(left)}/{money(cap)}")
    return f"{', '.join(parts)} ({view.get('breach_action', 'pause')})" if parts else ABSENT


def money(micros: int) -> str:
    """Return integer millionths of a dollar as `$X.XX`, half up; a trifle as `<$0.01`, never as nothing."""
    if 0 < micros < 5_000:
        return "<$0.01"
    cents = (micros + 5_000) // 10_000
    return f"${cents // 100:,}.{cents % 100:02d}"


def duration(seconds: float) -> str:
    """Return how long, in the two largest units that count: `2 d 3 h`, `4 min 5 s`, `6 s`."""
    whole = int(seconds)
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    parts = []
    for unit, size in units:
        count, whole = divmod(whole, size)
        parts.append((count, unit))
    first = next((at for at, (count, _) in enumerate(parts) if count), len(parts) - 1)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count or unit == "s")


def grouped(count: Any) -> str:
    """Return a count with its thousands set apart; a dash for None."""
    return ABSENT if count is None else f"{count:,}"


def plural(count: int, noun: str) -> str:
    """Return `1 call`, `2 calls`."""
    return f"{grouped(count)} {noun}{'' if count == 1 else 's'}"
