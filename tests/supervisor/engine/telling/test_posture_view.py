from dataclasses import replace

from kt_manifest.contract import kinds
from kt_manifest.contract.declared_posture import ConfigSwitch, Isolation, Posture, Updates, Version
from kt_manifest.contract.snapshot import Adapter
from kt_supervisor.engine.telling import posture_view


def _adapter(posture: Posture) -> Adapter:
    plain = kinds.command(["prog"], interactive=False, observe=False)
    return replace(plain, contract_version="1.0.0", posture=posture)


def test_a_kind_that_nobody_declared_has_no_posture() -> None:
    assert posture_view.document(kinds.builtin("mock")) is None


def test_what_is_not_declared_is_null() -> None:
    nothing = {"substitution": None, "isolation": None, "updates": None, "version": None}

    assert nothing == posture_view.document(_adapter(Posture()))


def test_everything_that_is_declared_is_shown() -> None:
    posture = Posture(
        substitution=("$VAR",),
        isolation=Isolation(env={"A": "a/b"}, undocumented=("A",), validated="1.2"),
        updates=Updates(
            env={"U": "1"},
            args=("--no-update",),
            config=ConfigSwitch(env="C", key="k", value=False),
            switch="words",
            managed_layer="MDM",
            verified="1.2",
        ),
        version=Version(command=("agent", "-v"), pattern="(.*)"),
    )

    assert posture_view.document(_adapter(posture)) == {
        "substitution": ["$VAR"],
        "isolation": {"directories": {"A": "a/b"}, "undocumented": ["A"], "validated": "1.2"},
        "updates": {
            "never": False,
            "env": {"U": "1"},
            "args": ["--no-update"],
            "config": {"env": "C", "key": "k", "value": False},
            "switch": "words",
            "managed_layer": "MDM",
            "verified": "1.2",
        },
        "version": {"command": ["agent", "-v"]},
    }
