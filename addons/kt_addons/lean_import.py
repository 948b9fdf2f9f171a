"""Imports mitmproxy without its default addons: two thirds of a gateway's start, and nothing that it uses.

`mitmproxy/addons/__init__.py` imports all of them, and with them Flask, ldap3, pyparsing. Each start of a gateway is
a time in which agents wait, so its process enters the package as a name only: its modules are found, its own code
is not run. For a process of our own; whoever wants `mitmproxy.addons.default_addons` must not call this.
"""

import importlib.util
import sys

PACKAGE = "mitmproxy.addons"


def skip_default_addons() -> None:
    """Make the package known without running it; too late, and nothing is done, where it has been imported."""
    if PACKAGE in sys.modules:
        return
    spec = importlib.util.find_spec(PACKAGE)
    if spec is not None:
        sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)
