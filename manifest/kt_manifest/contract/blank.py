"""A new adapter.toml: valid as it is written, and with a word on each line that its author will want to change."""

import os
import tempfile
from pathlib import Path

from kt_manifest import exit_codes, words
from kt_manifest.contract import manifest, snapshot
from kt_manifest.toml_text import quoted

_MODE = 0o644


class ValueUnfit(Exception):
    """What was asked for cannot stand in a manifest; nothing was written."""

    exit_code = exit_codes.USAGE

    def __init__(self, fault: manifest.ManifestInvalid) -> None:
        self.got = fault.got
        self.wanted = fault.wanted
        self.do = "choose another value; nothing was written"
        super().__init__(f"unfit for {fault.section}: got {self.got}, wanted {self.wanted}; {self.do}")


class NotWritten(Exception):
    """There is something in the way of a new adapter.toml; nothing was changed."""

    exit_code = exit_codes.FAILED

    def __init__(self, path: Path, *, got: str, do: str) -> None:
        self.path = path
        self.got = got
        self.wanted = f"a folder without an {manifest.FILE_NAME}"
        self.do = do
        super().__init__(
            f"cannot write {words.shown_path(path)}: got {got}, wanted {self.wanted}; {do}; nothing was changed"
        )


def text(*, kind: str, source: str, program: str) -> str:
    """Return a manifest for an agent that is started by `program`.

    Args:
        kind: what the adapter is called; judged like that of any manifest.
        source: `snapshot.SELF_REPORTED` or `snapshot.ENGINE_OBSERVED`.
        program: a bare name or an absolute path.

    Raises:
        ValueUnfit: one of the three cannot stand in a manifest.
    """
    assert source in snapshot.SOURCES, "one of two"
    metering = _OBSERVED if source == snapshot.ENGINE_OBSERVED else _REPORTED
    written = _TEXT.format(
        contract=manifest.CONTRACT_VERSION,
        kind=quoted(kind),
        program=quoted(program),
        source=quoted(source),
        metering=metering,
    )
    try:
        manifest.parse(written, origin=manifest.FILE_NAME)
    except manifest.ManifestInvalid as fault:
        raise ValueUnfit(fault) from fault
    return written


def write(folder: Path, content: str) -> Path:
    """Put a new adapter.toml into `folder`, which is made where it is not there; return its path.

    The file appears whole or not at all, and only where there is none.

    Raises:
        NotWritten.
    """
    file = folder / manifest.FILE_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _appear(file, content.encode())
    except FileExistsError as error:
        there = file if os.path.lexists(file) else folder
        got = f"{words.shown_path(there)}, which is there already"
        raise NotWritten(file, got=got, do="choose another folder, or remove it yourself") from error
    except (OSError, ValueError) as error:
        said = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        raise NotWritten(file, got=said, do="choose another folder") from error
    return file


def _appear(file: Path, data: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(prefix=".adapter-", dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fchmod(stream.fileno(), _MODE)
            os.fsync(stream.fileno())
        os.link(temporary, file)  # unlike a rename, it never replaces
    finally:
        Path(temporary).unlink()


_TEXT = """\
#:schema ./adapter.schema.json
# The line above is for editors: kt adapter schema > adapter.schema.json
# Try with: kt adapter validate .    All fields: docs/manifest.md. The tutorial: docs/writing-adapters.md.
contract_version = "{contract}"

[adapter]
kind = {kind}
# name = "What people are shown"

[lifecycle.start]
exec = {program} # a name to be found on PATH, or an absolute path
# args = ["--serve"]
# env = {{ LOG_LEVEL = "info" }}

# Only where the agent has a verb of its own for it. Without, the end of its process is the stop.
# [lifecycle.stop]
# exec = {program}
# args = ["--shutdown"]

# guaranteed, best-effort or unsupported; a system that is not named is unsupported.
[capabilities.pause]
linux = "guaranteed"
macos = "guaranteed"

# Only where the agent reads messages from its standard input, which is connected only then.
# [capabilities.interaction]
# linux = "guaranteed"
# macos = "guaranteed"

[metering]
source = {source}

# Where settings go; exactly one target each, and a key with dots is quoted.
[config.model]
env = "MODEL"
# flag = "--model"
# file = {{ path = "config/agent.toml", key = "llm.model" }}
{metering}
# When is it ready? Without more: once it has been alive for 300 ms.
# [kt.ready]
# line = "Listening on .*:[0-9]+"
"""

_REPORTED = """
# The agent, or a shim around it, prints one line for each call (docs/writing-adapters.md):
#   KTESIO_USAGE {"sequence": 0, "input_tokens": 128, "output_tokens": 512}
"""

_OBSERVED = """
[config."metering.base_url"]
env = "OPENAI_BASE_URL" # the address of the agent's own listener

# A placeholder arrives here, where the operator has given the provider's key to the gateway.
[config."metering.upstream_api_key"]
env = "OPENAI_API_KEY"
"""
