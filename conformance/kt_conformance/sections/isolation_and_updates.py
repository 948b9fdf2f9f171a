"""`isolation_and_updates`: the subject keeps to its own Agent Home, as far as its adapter says how."""

from kt_conformance.report import NotApplicable
from kt_conformance.stage import Stage


def check(stage: Stage) -> None:  # noqa: ARG001 (the signature is the catalogue's)
    """Say that nothing is declared."""
    raise NotApplicable("the adapter declares neither [kt.isolation] nor [kt.updates]")
