"""Which variables of whoever types `start` reach an agent: a filter over names. Pure, and shows no value.

Laws: what is not named stays out; a provider's key comes in only where it is named in full, never by a beginning or
by `*`; the engine's own variables never come in, since they would speak for another Run.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kt_manifest import words

DEFAULTS = "@default"
"""Stands for `DEFAULT` in a list of one's own."""

DEFAULT: tuple[str, ...] = (
    # who and where: POSIX.1-2017 section 8.3, and what shells and terminals add
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR"),
    *("TERM", "COLORTERM", "NO_COLOR", "XDG_*"),
    # how to reach the network: curl(1) and OpenSSL read these, and so do most runtimes
    *(
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
    ),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    # what a coding agent needs to commit and push; not GIT_DIR and its kin, which would lead it into another repository
    *("SSH_AUTH_SOCK", "GIT_AUTHOR_*", "GIT_COMMITTER_*", "GIT_SSH", "GIT_SSH_COMMAND"),
    "VIRTUAL_ENV",
    # so that a `kt` called by the agent finds the state directory that it belongs to
    "KTESIO_STATE_DIR",
)

_KEY_ENDINGS = ("_API_KEY", "_API_TOKEN", "_AUTH_TOKEN", "_ACCESS_TOKEN", "_SECRET_KEY", "_SECRET_ACCESS_KEY")
_KEY_NAMES = frozenset(
    {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "REPLICATE_API_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"}
)
_OURS = "KT_"


@dataclass(frozen=True, slots=True)
class Rule:
    """A list of patterns, taken apart: names, and beginnings of names; no provider's key comes in by a beginning."""

    names: frozenset[str]
    beginnings: tuple[str, ...]

    def lets_in(self, name: str) -> bool:
        """Tell whether a variable of this name is inherited."""
        if is_ours(name):
            return False
        return name in self.names or (name.startswith(self.beginnings) and not is_provider_key(name))

    def to_json(self) -> dict[str, list[str]]:
        """Return it as a caller is told, who has this rule from nowhere else."""
        return {
            "names": sorted(self.names),
            "beginnings": list(self.beginnings),
            "never_by_beginning": sorted(_KEY_NAMES),
            "never_by_beginning_with_ending": list(_KEY_ENDINGS),
            "never_with_beginning": [_OURS],
        }


def rule(patterns: Iterable[str] | None = None) -> Rule:
    """Return what a list of patterns means (`inherited` has the argument)."""
    wanted = DEFAULT if patterns is None else tuple(_expanded(patterns))
    names = frozenset(pattern for pattern in wanted if not pattern.endswith("*"))
    return Rule(names, tuple(pattern[:-1] for pattern in wanted if pattern.endswith("*")))


def inherited(environment: Mapping[str, str], patterns: Iterable[str] | None = None) -> dict[str, str]:
    """Return the variables that an agent inherits.

    Args:
        environment: the variables of whoever asked for the start.
        patterns: names, or beginnings that end in `*`; `@default` stands for `DEFAULT`. None is `DEFAULT`, an empty
            list inherits nothing.
    """
    letting = rule(patterns)
    return {name: value for name, value in environment.items() if letting.lets_in(name)}


def by_setting(environment: Mapping[str, str], setting: str | list[str] | None) -> dict[str, str]:
    """Return the same for `env.inherit` as it is set: a list, or names with spaces between them."""
    return inherited(environment, setting.split() if isinstance(setting, str) else setting)


def is_provider_key(name: str) -> bool:
    """Tell whether a variable usually holds somebody's key, by its name."""
    upper = name.upper()
    return upper in _KEY_NAMES or upper.endswith(_KEY_ENDINGS)


def is_ours(name: str) -> bool:
    """Tell whether a variable is the engine's own, which nobody else sets."""
    return name.startswith(_OURS)


def named_in_full(patterns: Iterable[str] | None) -> frozenset[str]:
    """Return the variables that somebody named one by one; what `@default` stands for is nobody's wish."""
    return frozenset(
        pattern for pattern in patterns or () if pattern != DEFAULTS and not pattern.endswith("*")
    )


def fault(pattern: str) -> str | None:
    """Say why a text is no pattern; None when it is one."""
    if pattern == DEFAULTS:
        return None
    name = pattern.removesuffix("*")
    if "*" in name:
        return f"{words.shown(pattern)}, where * stands elsewhere than at the end"
    if is_ours(name):
        return f"{words.shown(pattern)}, which is the engine's own"
    if name and (wrong := words.fault_in_environment_name(name)):
        return f"{words.shown(pattern)}, {wrong}"
    return None if pattern else "an empty name"


def _expanded(patterns: Iterable[str]) -> Iterable[str]:
    for pattern in patterns:
        if pattern == DEFAULTS:
            yield from DEFAULT
        else:
            yield pattern
