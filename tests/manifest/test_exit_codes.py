import ast
from pathlib import Path

from kt_ledger import exit_codes as ledgers
from kt_manifest import exit_codes

ROOM = Path(__file__).resolve().parents[2] / "manifest" / "kt_manifest"


def test_the_codes_are_the_ledgers_but_for_the_shells_own() -> None:
    def named(module: object) -> dict[str, int]:
        return {name: code for name, code in vars(module).items() if name.isupper() and isinstance(code, int)}

    assert named(exit_codes) == {name: code for name, code in named(ledgers).items() if code <= 6}


def test_no_refusal_of_the_room_has_a_number_of_its_own() -> None:
    found = [
        f"{path.name}:{node.lineno}"
        for path in ROOM.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "exit_code" for target in node.targets)
        and isinstance(node.value, ast.Constant)
    ]

    assert [] == found
