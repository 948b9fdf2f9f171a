"""What peers may ask, checked field by field before anything is done."""

MAX_TIMEOUT_S = 1e9

Record = dict[str, object]


class RequestInvalid(Exception):
    """A peer asked for something that cannot be done; the message goes back to it."""


class Command:
    """A program to run beside the agent: `argv[0]` absolute, `env` on top of the agent's."""

    __slots__ = ("argv", "env")

    def __init__(self, fields: object, *, where: str) -> None:
        """Check every field. Raises RequestInvalid."""
        if not isinstance(fields, dict):
            raise RequestInvalid(f"{where}: got a JSON {type(fields).__name__}, wanted an object with argv")
        argv, env = fields.get("argv"), fields.get("env")
        env = {} if env is None else env
        if not isinstance(argv, list) or not argv or not all(_is_text(item) for item in argv):
            raise RequestInvalid(f"{where}.argv: got a {type(argv).__name__}, wanted a list of texts")
        if not argv[0].startswith("/"):
            raise RequestInvalid(f"{where}.argv[0]: got {argv[0]!r}, wanted an absolute path")
        if not isinstance(env, dict) or not all(_is_text(key) and _is_text(env[key]) for key in env):
            raise RequestInvalid(f"{where}.env: got a {type(env).__name__}, wanted an object of texts")
        self.argv: list[str] = argv
        self.env: dict[str, str] = env


def timeout_s(request: Record, default_s: float) -> float:
    """Return the request's `timeout_s`. Raises RequestInvalid."""
    value = request.get("timeout_s", default_s)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < MAX_TIMEOUT_S:
        raise RequestInvalid(f"timeout_s: got {value!r}, wanted seconds from 0 to {MAX_TIMEOUT_S:g}")
    return value


def stop_command(request: Record) -> Command | None:
    """Return the declared stop command of a "stop", if it has one. Raises RequestInvalid."""
    fields = request.get("command")
    return None if fields is None else Command(fields, where="command")


def command_id(request: Record) -> int | str:
    """Return the `id` of a "run". Raises RequestInvalid."""
    value = request.get("id")
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise RequestInvalid(f"id: got {value!r}, wanted a number or a text that names the command")
    return value


def segments(request: Record) -> dict[str, int]:
    """Return the highest segment of each stream that may begin; a stream without one has no bound."""
    given = request.get("segments") or {}
    if not isinstance(given, dict) or not all(
        isinstance(number, int) and not isinstance(number, bool) and number > 0 for number in given.values()
    ):
        raise RequestInvalid(f"segments: got {given!r}, wanted numbers from 1 by the stream's name, or null")
    return {str(stream): number for stream, number in given.items()}


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value
