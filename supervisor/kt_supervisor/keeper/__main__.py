"""Run the keeper of one Run; started by the engine as `python -I -S <this file>`, specification on standard input."""

import sys
from pathlib import Path


def _find_rooms() -> None:
    """Make `kt_supervisor` and `kt_ledger` importable without site-packages: in a checkout they lie apart."""
    package_root = Path(__file__).resolve().parents[2]
    sys.path.insert(0, str(package_root))
    if not (package_root / "kt_ledger").is_dir():
        sys.path.insert(1, str(package_root.parent / "ledger"))


if __name__ == "__main__":
    _find_rooms()
    from kt_supervisor.keeper import entry

    sys.exit(entry.main())
