"""The package on two booted boxes, with the ledger on PostgreSQL and the market on a third: a leader and a standby.

The boxes are wired to each other. Each reaches the simulated market through a relay on its own loopback, since a key
is sent in clear text to nobody else.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from agent import __version__
from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from tests.deploy.conftest import CONFIG, EARLIER, LIVE, MARKET, Box, Packages
from tests.support import guest

pytestmark = pytest.mark.guest

SERVER = f"{guest.NETWORK}.1"
LEDGER = f'''path = "gpubid.sqlite"
url = "postgresql://gpubid@{SERVER}/gpubid"
credential = "ledger_password"'''
SHARED = LIVE.replace('path = "gpubid.sqlite"', LEDGER)
PASSWORD = "a-password-of-the-ledger"
RELAY = """\
[Unit]
Requires=relay.socket
[Service]
ExecStart=/lib/systemd/systemd-socket-proxyd {target}
"""
RELAYED = """\
[Socket]
ListenStream={listens}
FreeBind=yes
"""
STANDS_BY = 'systemctl show -p StatusText --value gpubid | grep "stands by; {host} .* leads since"'
LEADS = "systemctl show -p StatusText --value gpubid | grep -x running"


@dataclass(frozen=True, slots=True)
class Boxes:
    """A third box with server and market, and the two that run gpubid."""

    third: Box
    one: Box
    two: Box

    def led_by(self, leader: Box, other: Box, contracts: list[int]) -> None:
        """Insist that one leads with the same leases, and that the other one stands by and names it."""
        leader.until(LEADS, "the lead")
        name = leader.out("hostname").strip()
        other.until(STANDS_BY.format(host=name), f"a standby that sees {name} lead")
        self.bill(leader, contracts)

    def bill(self, leader: Box, contracts: list[int]) -> None:
        """Insist that nothing else bills than what the leader keeps."""
        leader.until('gpubid fleet --json | grep -q \'"state": "running"\'', "the lease in the leader's fleet")
        assert self.third.billing() == contracts


@pytest.fixture
def boxes(packages: Packages) -> Iterator[Boxes]:
    with contextlib.ExitStack() as stack:
        third, *two = (
            Box(stack.enter_context(guest.booted(packages.folder, "postgresql")), packages) for _ in range(3)
        )
        third.guest.wire(*(box.guest for box in two))
        _serve(third)
        for number, box in enumerate(two, 1):
            _set_up(box, f"box{number}")
        yield Boxes(third, *two)


def test_two_boxes_are_upgraded_lose_power_and_are_removed(boxes: Boxes, earlier: str) -> None:
    one, two = boxes.one, boxes.two
    for box in (one, two):
        _install(box, earlier)
    one.out("systemctl enable --now gpubid")
    rented = boxes.third.until_billing()
    two.out("systemctl enable --now gpubid")
    boxes.led_by(one, two, rented)
    assert two.out("gpubid --version") == f"gpubid {EARLIER}\n"
    refused = two.run("gpubid pause train")
    assert refused.returncode != 0
    assert "give the command on box1" in " ".join((refused.stdout + refused.stderr).split())

    # The standby first, then the leader, whose stop hands the lead over.
    two.install(two.packages.present)
    boxes.led_by(one, two, rented)
    one.install(one.packages.present)
    boxes.led_by(two, one, rented)
    assert {box.out("gpubid --version") for box in (one, two)} == {f"gpubid {__version__}\n"}
    assert "nothing is copied" in one.out("systemctl start gpubid-backup; journalctl -o cat -u gpubid-backup")

    two.guest.lose_power()
    one.until(LEADS, "the lead of a box whose leader lost its power")
    boxes.bill(one, rented)

    removed = one.out("apt-get purge --yes --quiet gpubid")
    assert "removing the package releases nothing" in removed
    assert boxes.third.billing() == rented
    tables = "psql -tA -d gpubid -c 'SELECT count(*) FROM gpubid.leases'"
    assert boxes.third.run(tables, user="postgres").stdout == "1\n"


def test_a_standbys_package_is_removed_and_nobody_notices(boxes: Boxes) -> None:
    one, two = boxes.one, boxes.two
    for box in (one, two):
        _install(box, box.packages.present)
    one.out("systemctl enable --now gpubid")
    rented = boxes.third.until_billing()
    two.out("systemctl enable --now gpubid")
    boxes.led_by(one, two, rented)
    led_since = one.guest.shows("MainPID")
    two.out("apt-get remove --yes --quiet gpubid")
    boxes.bill(one, rented)
    assert one.guest.shows("MainPID") == led_since


def _serve(third: Box) -> None:
    """Give the third box a database for the ledger, a market, and a relay to it for the other boxes."""
    role = f"CREATE ROLE gpubid LOGIN PASSWORD '{PASSWORD}'"
    for statement in (role, "CREATE DATABASE gpubid OWNER gpubid", "ALTER SYSTEM SET listen_addresses = '*'"):
        third.out(f'psql -c "{statement}"', user="postgres")
    third.out(f"echo 'host gpubid gpubid {guest.NETWORK}.0/24 scram-sha-256' >> /etc/postgresql/15/main/pg_hba.conf")
    third.out("systemctl restart postgresql")
    third.install(third.packages.present)
    third.open_market()
    _relay(third, f"{SERVER}:{MARKET}", f"127.0.0.1:{MARKET}")


def _set_up(box: Box, name: str) -> None:
    """Give a box its name, and a relay to the market. Its own server, which comes with the base, ends."""
    box.out(f"hostname {name} && echo 127.0.0.1 {name} >> /etc/hosts && systemctl disable --now postgresql")
    _relay(box, f"127.0.0.1:{MARKET}", f"{SERVER}:{MARKET}")


def _install(box: Box, package: str) -> None:
    """Install a package, and give it the configuration and the keys of both boxes."""
    box.install(package)
    box.guest.write(CONFIG, SHARED)
    box.guest.write("/etc/credstore/vast_api_key", DEFAULT_KEY, "600")
    box.guest.write("/etc/credstore/ledger_password", PASSWORD, "600")


def _relay(box: Box, listens: str, target: str) -> None:
    box.guest.write("/etc/systemd/system/relay.socket", RELAYED.format(listens=listens))
    box.guest.write("/etc/systemd/system/relay.service", RELAY.format(target=target))
    box.out("systemctl daemon-reload && systemctl start relay.socket")
