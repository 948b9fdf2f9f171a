"""The command and its scripted engine, as the command's own tests have them."""

from tests.cli.conftest import kt as kt
from tests.cli.conftest import script as script
