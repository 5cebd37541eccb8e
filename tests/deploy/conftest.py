"""Two packages of different version, guests to install them in, and a market that runs beside them."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent import __version__
from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from tests.support import guest, programs

ROOT = Path(__file__).parents[2]
EARLIER = "0.0.9"
MARKET, CONTROL = 9801, 9802
CONFIG = "/etc/gpubid/agent.toml"
LIVE = programs.LIVE.format(url=f"http://127.0.0.1:{MARKET}").replace("127.0.0.1:0", "127.0.0.1:9477")
LIVE = LIVE.replace('path = "ledger.sqlite"', 'path = "gpubid.sqlite"')
ASK = """
import json, sys, urllib.request
method, path, body = sys.argv[1:]
asked = urllib.request.Request("http://127.0.0.1:%d" + path, method=method, data=body.encode() or None,
    headers={"Content-Type": "application/json"})
print(urllib.request.urlopen(asked, timeout=20).read().decode())
"""


@dataclass(frozen=True, slots=True)
class Packages:
    """The folder of the packages, and the name of the present one."""

    folder: Path
    present: str


class Box:
    """A guest with the package, and a simulated market running in it as a service of its own."""

    def __init__(self, running: guest.Guest, packages: Packages) -> None:
        self.guest = running
        self.packages = packages
        self.out, self.until, self.run = running.out, running.until, running.run

    def install(self, package: str) -> str:
        """Install a package as a person does."""
        return self.out(f"apt-get install --yes --quiet --option Dpkg::Options::=--force-confold /mnt/{package}")

    def open_market(self) -> None:
        """Start the market and give the daemon a live configuration and a key."""
        order = f"gpubid simulate --hosts 60 --vast-port {MARKET} --control-port {CONTROL}"
        # The market's first line has its key. Without that line, every key in the journal is one that we leaked.
        told = "--property=Environment=HOME=/root --property=StandardOutput=null"
        self.out(f"systemd-run --quiet --unit market {told} {order}")
        self.until(self._asking("GET", "/truth"), "the market")
        self.guest.write(CONFIG, LIVE)
        self.guest.write("/etc/credstore/vast_api_key", DEFAULT_KEY, "600")

    def market(self, method: str, path: str, **body: Any) -> Any:
        """Ask the market's control API."""
        return json.loads(self.out(self._asking(method, path, **body)))

    def billing(self) -> list[int]:
        """Return the contracts that cost money now."""
        return list(self.market("GET", "/truth")["billing_now"])

    def until_billing(self) -> list[int]:
        """Wait for a rent."""
        found = f"{self._asking('GET', '/truth')} | grep -q '\"billing_now\": *\\[[0-9]'"
        self.until(found, "a rent")
        return self.billing()

    def fleet(self) -> Mapping[str, Any]:
        """Return what `gpubid fleet` shows."""
        return dict(json.loads(self.out("gpubid fleet --json")))

    def page(self, path: str) -> str:
        """Read one of the daemon's pages."""
        return self.out(self.paging(path))

    @staticmethod
    def paging(path: str) -> str:
        """Return the command that reads one of the daemon's pages."""
        return f"/usr/bin/python3 -c '{ASK % 9477}' GET {path} ''"

    @staticmethod
    def _asking(method: str, path: str, **body: Any) -> str:
        sent = json.dumps(body) if body else ""
        return f"/usr/bin/python3 -c '{ASK % CONTROL}' {method} {path} '{sent}'"


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    guest.base()
    folder = tmp_path_factory.mktemp("packages")
    present = folder / Path(_ran(ROOT / "deploy/debian/build.sh", "--loose", "--out", folder).strip()).name
    return Packages(folder, present.name)


@pytest.fixture(scope="session")
def earlier(packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the same package under an earlier version: made from the present one, as building takes a minute."""
    present, unpacked = packages.folder / packages.present, tmp_path_factory.mktemp("earlier")
    _ran("dpkg-deb", "--raw-extract", present, unpacked)
    (module,) = unpacked.glob("usr/lib/gpubid/lib/python3.*/site-packages/agent/__init__.py")
    for file in (module, unpacked / "DEBIAN/control"):
        file.write_text(file.read_text().replace(__version__, EARLIER))
    for stale in module.parent.glob("__pycache__/__init__.*.pyc"):
        stale.unlink()
    made = present.with_name(present.name.replace(__version__, EARLIER))
    _ran("dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", unpacked, made)
    return made.name


def _ran(*order: str | Path) -> str:
    ran = subprocess.run([str(word) for word in order], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture
def empty(packages: Packages) -> Iterator[Box]:
    """Boot a guest without the package."""
    with guest.booted(packages.folder) as running:
        yield Box(running, packages)


@pytest.fixture
def box(empty: Box) -> Box:
    """Install the present package and open a market; the daemon does not run yet."""
    empty.install(empty.packages.present)
    empty.open_market()
    return empty
