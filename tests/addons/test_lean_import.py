import subprocess
import sys

import pytest

LOOK = """
import sys
{before}
from kt_addons import gateway_process
print(sorted(sys.modules.keys() & {{"flask", "ldap3", "mitmproxy.addons.proxyserver"}}))
"""
LEAN = "from kt_addons import lean_import; lean_import.skip_default_addons()"


@pytest.mark.parametrize(
    ("before", "found"),
    [
        (LEAN, ["mitmproxy.addons.proxyserver"]),
        ("import mitmproxy.addons; " + LEAN, ["flask", "ldap3", "mitmproxy.addons.proxyserver"]),
    ],
    ids=["in time", "too late"],
)
def test_a_gateway_imports_what_it_uses_and_no_web_framework(before: str, found: list[str]) -> None:
    code = LOOK.format(before=before)

    told = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )

    assert str(found) == told.stdout.strip()
