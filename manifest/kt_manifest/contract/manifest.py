"""`adapter.toml` 1.0.0: one file in, one frozen adapter out, or the first fault in the contract's order.

Writes nothing, asks no network, and never blocks on what it is pointed at.
"""

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kt_manifest import exit_codes, line_numbers, toml_text, words
from kt_manifest.contract import (
    declared_posture,
    default_rules,
    judgement,
    kt_config_rules,
    posture_rules,
    ready_rules,
    schema,
    shipped_folder,
    snapshot,
    trial_rules,
)
from kt_manifest.contract.capability import Declaration, Level, Support
from kt_manifest.contract.findings import Finding, section
from kt_manifest.contract.snapshot import Adapter, Template

FILE_NAME = shipped_folder.FILE_NAME
CONTRACT_VERSION = "1.0.0"
_CONTRACT_MAJOR = 1


class ManifestNotFound(Exception):
    """There is no adapter.toml where one was named."""

    exit_code = exit_codes.NOT_FOUND

    def __init__(self, path: Path, *, is_folder: bool = False) -> None:
        self.path = path
        self.got = f"no {FILE_NAME} in" if is_folder else "no file at"
        self.got += f" {words.shown_path(path)}"
        self.wanted = f"an {FILE_NAME}, or a folder that contains one"
        self.do = "check the path (`kt adapter new DIR` writes one; `kt adapter list` names those that come with kt)"
        super().__init__(f"manifest not found: got {self.got}, wanted {self.wanted}; {self.do}")


class ManifestUnreadable(Exception):
    """There is something, but it cannot be read as a file."""

    exit_code = exit_codes.FAILED

    def __init__(self, path: Path, *, got: str) -> None:
        self.path = path
        self.got = got
        self.wanted = f"a readable regular file of at most {toml_text.LIMIT_BYTES // 1024} KiB"
        self.do = "check what the path leads to, and its permissions"
        where = words.shown_path(path)
        super().__init__(f"unreadable manifest {where}: got {got}, wanted {self.wanted}; {self.do}")


class ManifestInvalid(Exception):
    """The manifest has a fault; the first in the order of judgement is named.

    `section` is written as in the file, in brackets (`[adapter]`; the key itself for a top-level key). `kind` is
    `toml`, `missing_section`, `invalid_field`, `unknown_key` or `unknown_word`. `line` is that of the key, or
    else of its section; None where that is not in the file, or where nobody asked (`judge` does).
    """

    exit_code = exit_codes.FAILED

    def __init__(self, origin: str, finding: Finding) -> None:
        self.origin = origin
        self.at = finding.at
        self.line: int | None = None
        self.section = finding.section
        self.kind = finding.kind
        self.got = finding.got
        self.wanted = finding.wanted
        self.do = finding.do
        what = _SENTENCES[finding.kind]
        super().__init__(
            f"{origin}{what.format(finding.section)}: got {self.got}, wanted {self.wanted}; {self.do}"
        )


_SENTENCES = {
    "toml": " is not valid TOML",
    "missing_section": ": missing {}",
    "invalid_field": ": invalid {}",
    "unknown_key": ": unknown key in {}",
    "unknown_word": ": unknown word in {}",
}


class ContractIncompatible(Exception):
    """The manifest is written for another major version of the adapter contract; `line` as in `ManifestInvalid`."""

    exit_code = exit_codes.FAILED

    def __init__(self, declared: str) -> None:
        self.declared = declared
        self.section = "contract_version"
        self.kind = "incompatible_contract"
        self.at: schema.Loc = ("contract_version",)
        self.line: int | None = None
        self.got = declared
        self.wanted = f"a version with the major of {CONTRACT_VERSION}"
        self.do = "see docs/adapter-contract.md#versioning"
        super().__init__(
            f"incompatible adapter contract: manifest declares {declared}, engine speaks {CONTRACT_VERSION} — "
            "compatible iff the major versions match (contract v1 policy, docs/adapter-contract.md#versioning)"
        )


def load(path: Path) -> Adapter:
    """Return the adapter that a manifest describes; `path` is the file, or the folder that holds an adapter.toml.

    Raises:
        ManifestNotFound, ManifestUnreadable, ManifestInvalid, ContractIncompatible.
    """
    file, data = _read(path)
    return _accepted(judge_bytes(data, origin=words.shown_path(file)))


def parse(text: str, *, origin: str) -> Adapter:
    """Return the adapter that a manifest's text describes; `origin` is how messages call it.

    Raises:
        ManifestInvalid: the first fault, in the order of `judgement.JUDGEMENT`.
        ContractIncompatible: no fault, but the declared major version is not 1.
    """
    return _accepted(judge_text(text, origin=origin))


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of a manifest: an adapter, or everything that is wrong with it, the fault that counts first."""

    adapter: Adapter | None
    faults: tuple["ManifestInvalid | ContractIncompatible", ...]


def judge(path: Path) -> Judged:
    """Return what `load` makes of a manifest, with all faults instead of the first, and their lines.

    Raises:
        ManifestNotFound, ManifestUnreadable.
    """
    file, data = _read(path)
    judged = judge_bytes(data, origin=words.shown_path(file))
    if judged.faults and judged.faults[0].kind != "toml":
        _place(judged.faults, line_numbers.lines(toml_text.decode(data)))
    return judged


def _place(
    faults: Sequence["ManifestInvalid | ContractIncompatible"], lines: dict[line_numbers.Path, int]
) -> None:
    """Give each fault its line: of the very key, else of the last table on the way there, else of its section."""
    sections = {section(path): line for path, line in lines.items()}
    for fault in faults:
        path = fault.at
        while path and path not in lines:
            path = path[:-1]
        fault.line = lines.get(path, sections.get(fault.section))


def judge_bytes(data: bytes, *, origin: str) -> Judged:
    """Return what becomes of the bytes of a file; `origin` is how messages call it. Raises nothing."""
    try:
        text = toml_text.decode(data)
    except toml_text.NotToml as error:
        return Judged(None, (_not_toml(origin, error),))
    return judge_text(text, origin=origin)


def judge_text(text: str, *, origin: str) -> Judged:
    """Return what becomes of a manifest's text. Raises nothing."""
    try:
        document = toml_text.parse(text)
    except toml_text.NotToml as error:
        return Judged(None, (_not_toml(origin, error),))
    found = tuple(ManifestInvalid(origin, finding) for finding in judgement.faults(document))
    refused = _refusal(document.get("contract_version"))
    if found or refused:
        return Judged(None, (*found, *refused))
    return Judged(_adapter(schema.Manifest.model_validate(document)), ())


def faults(text: str, *, origin: str) -> list["ManifestInvalid | ContractIncompatible"]:
    """Return every fault of a manifest's text, in the order of judgement."""
    return list(judge_text(text, origin=origin).faults)


def _accepted(judged: Judged) -> Adapter:
    if judged.adapter is None:
        raise judged.faults[0]
    return judged.adapter


def _read(path: Path) -> tuple[Path, bytes]:
    try:
        file = path / FILE_NAME if path.is_dir() else path
        with toml_text.opened(file) as descriptor:
            return file, toml_text.read(descriptor)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise ManifestNotFound(path, is_folder=file != path) from error
        raise ManifestUnreadable(path, got=error.strerror or str(error)) from error
    except ValueError as error:  # a NUL in the path
        raise ManifestUnreadable(path, got=str(error)) from error


def _not_toml(origin: str, error: toml_text.NotToml) -> ManifestInvalid:
    where = f"line {error.line}"
    finding = Finding(where, "toml", f"{where}: {error.reason}", "TOML 1.0", "correct that line")
    fault = ManifestInvalid(origin, finding)
    fault.line = error.line
    return fault


def _refusal(declared: object) -> tuple[ContractIncompatible, ...]:
    """Return what speaks against a version's major; what is no version at all is a fault of the field."""
    version = judgement.version(declared) if isinstance(declared, str) else None
    # Any other major is refused, a pre-release of it included, and 0.x: the contract was never published under it.
    if version is None or version.major == _CONTRACT_MAJOR:
        return ()
    return (ContractIncompatible(judgement.trimmed(str(declared))),)


def _adapter(model: schema.Manifest) -> Adapter:
    assert model.adapter and model.adapter.kind and model.lifecycle and model.capabilities, "judged before"
    assert model.metering and model.metering.source and model.contract_version, "judged before"
    operations = model.lifecycle
    mapping, types = kt_config_rules.mapping(model.config, model.kt.config if model.kt else {})
    return Adapter(
        kind=model.adapter.kind,
        display_name=model.adapter.name,
        start=_template(operations.start),
        stop=_template(operations.stop),
        pause=_template(operations.pause),
        resume=_template(operations.resume),
        declaration=Declaration(
            pause=_support(model.capabilities.pause), interaction=_support(model.capabilities.interaction)
        ),
        metering_source=model.metering.source,
        send_url=model.kt.send.url if model.kt and model.kt.send else None,
        channel=model.interaction.channel if model.interaction else snapshot.CHANNELS[0],
        mapping=mapping,
        types=types,
        contract_version=judgement.trimmed(model.contract_version),
        ready=ready_rules.declared(model.kt.ready) if model.kt and model.kt.ready else None,
        posture=posture_rules.declared(model.kt) if model.kt else declared_posture.NOTHING,
        defaults=default_rules.declared(model.kt.defaults) if model.kt else {},
        trial=trial_rules.declared(model.kt.test if model.kt else None),
    )


def _template(operation: schema.OperationSection | None) -> Template | None:
    if operation is None:
        return None
    return Template(exec=operation.exec or "", args=tuple(operation.args), env=dict(operation.env))


def _support(levels: schema.SupportSection) -> Support:
    return Support(linux=Level(levels.linux), macos=Level(levels.macos), windows=Level(levels.windows))
