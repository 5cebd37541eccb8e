"""A ledger on a server without the driver's library: a sentence with the command that installs it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
WITHOUT_LIBRARY = """
import ctypes.util, os, pathlib
os.environ["PSYCOPG_IMPL"] = "python"
ctypes.util.find_library = lambda name: None
from agent.ledger import storage
from agent.ledger.ledger_errors import LedgerError
from agent.ledger.server_address import ServerAddress
try:
    storage.of(pathlib.Path("ledger.sqlite"), ServerAddress("postgresql://gpubid@db.invalid/gpubid", "gpubid"))
except LedgerError as error:
    print(error.code.value, error.sentence)
"""


def test_the_driver_without_libpq_says_what_to_install() -> None:
    """The Debian package has the driver alone, and Debian's libpq5 is suggested beside it."""
    ran = subprocess.run([sys.executable, "-c", WITHOUT_LIBRARY], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("no_driver ")
    assert "apt install libpq5" in ran.stdout
