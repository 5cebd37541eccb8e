"""The package in a booted Debian: installed, started, reloaded, broken, stopped, upgraded, purged."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent import __version__
from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from tests.deploy import keep_ledgers
from tests.deploy.conftest import CONFIG, EARLIER, LIVE, ROOT, Box

pytestmark = pytest.mark.guest

LEDGERS = sorted((Path(__file__).parent / "ledgers").glob("*.sql"))
MOST_COMMANDS = 6
QUERY = "http://127.0.0.1:9090/api/v1/query?query=gpubid_leases"


def commands() -> list[str]:
    """Return the commands of the README's way from nothing to a watched workload."""
    part = (ROOT / "README.md").read_text().split("## Five minutes: a box\n")[1]
    block = re.search(r"^```\n(.*?)^```", part, re.MULTILINE | re.DOTALL)
    assert block is not None
    return [line.partition("  #")[0].strip() for line in block[1].splitlines()]


def test_from_nothing_to_a_watched_workload_in_six_commands(empty: Box) -> None:
    typed = commands()
    assert len(typed) <= MOST_COMMANDS
    empty.out(f"cp /mnt/{empty.packages.present} /root/")
    for command in typed:
        # A person is asked whether to go on.
        empty.out(command, given="y\n")
    empty.until('gpubid fleet --json | grep -q \'"state": "running"\'', "a lease that runs")
    asked = f"import urllib.request; print(urllib.request.urlopen('{QUERY}').read().decode())"
    seen = empty.until(f'/usr/bin/python3 -c "{asked}" | grep running', "the lease in Prometheus")
    running = [row for row in json.loads(seen)["data"]["result"] if row["metric"]["state"] == "running"]
    assert running
    assert running[0]["metric"]["job"] == "gpubid"


def test_what_is_installed(empty: Box) -> None:
    empty.install(empty.packages.present)
    assert empty.out("gpubid --version") == f"gpubid {__version__}\n"
    assert empty.out("systemd-analyze verify gpubid.service gpubid-backup.service gpubid-backup.timer") == ""
    assert empty.out("dpkg --verify gpubid") == ""
    for name in ("agent", "strategies", "migrations"):
        assert empty.run(f"/usr/bin/python3 -c 'import {name}'").returncode != 0, name
    shipped = empty.out("dpkg --listfiles gpubid")
    assert "borb" not in shipped
    assert "borb" not in empty.out("cat /usr/share/doc/gpubid/copyright")
    outside = [line for line in shipped.split("\n") if "/python" in line and not line.startswith("/usr/lib/gpubid")]
    assert outside == []
    # A command of root's in a folder of somebody else's imports nothing from there.
    empty.out("mkdir /tmp/agent && echo 'raise SystemExit(9)' > /tmp/agent/__init__.py && cd /tmp && gpubid check")


def test_a_life(box: Box) -> None:
    # What reckons with arrays must be let through the unit's walls, and take one thread.
    reckons = "import numpy as n, os; n.linalg.solve(n.eye(9), n.ones(9)); print(len(os.listdir('/proc/self/task')))"
    box.guest.write(
        "/etc/systemd/system/gpubid.service.d/reckon.conf",
        f'[Service]\nExecStartPre=/usr/lib/gpubid/bin/python -c "{reckons}"\n',
    )
    box.out("systemctl daemon-reload && systemctl enable --now gpubid")
    assert box.out("journalctl --no-pager -o cat -u gpubid -t python").split() == ["1"]
    assert box.guest.shows("ActiveState") == "active"
    assert box.guest.shows("StatusText") == "running"
    (contract,) = box.until_billing()
    assert box.guest.shows("User") == "gpubid"
    assert "gpubid" not in box.out("cut -d: -f1 /etc/passwd")
    assert box.out("stat -c %a /run/gpubid /var/lib/private/gpubid").split() == ["750", "700"]
    exposure = box.out("systemd-analyze security gpubid.service --no-pager --threshold=12")
    assert "Overall exposure level" in exposure

    box.guest.write(CONFIG, LIVE.replace("max_price = 0.8", "max_price = 0.7"))
    box.out("systemctl reload gpubid")
    box.until("journalctl -o cat -u gpubid | grep -q config.reloaded", "the good file taken")
    box.guest.write(CONFIG, LIVE.replace("max_price = 0.8", 'max_price = "much"'))
    box.out("systemctl reload gpubid")
    box.until("journalctl -o cat -u gpubid | grep config.refused | grep -q max_price", "the bad file refused")
    assert box.guest.shows("ActiveState") == "active"
    assert "gpubid_config_last_reload_successful 0.0" in box.page("/metrics")
    assert box.billing() == [contract]


def test_what_hangs_is_killed_and_what_is_killed_comes_back(box: Box) -> None:
    box.guest.write("/etc/systemd/system/gpubid.service.d/short.conf", "[Service]\nWatchdogSec=3\nRestartSec=1\n")
    box.out("systemctl daemon-reload && systemctl start gpubid")
    before = box.until_billing()
    box.out("kill -STOP $(systemctl show --property MainPID --value gpubid)")
    box.until("test $(systemctl show --property NRestarts --value gpubid) = 1", "the watchdog's bite")
    box.until("systemctl is-active gpubid", "a new start")
    assert "watchdog" in box.guest.journal().lower()
    assert "Current thread" in box.guest.journal(), "no stacks were left"
    box.out("kill -KILL $(systemctl show --property MainPID --value gpubid)")
    box.until("test $(systemctl show --property NRestarts --value gpubid) = 2", "a restart")
    box.until("systemctl is-active gpubid", "a new start")
    box.until('gpubid fleet --json | grep -q \'"state": "running"\'', "the same lease, running")
    assert box.billing() == before
    assert [lease["instance"] for lease in box.fleet()["leases"]] == [str(before[0])]
    assert box.out("find / -xdev -name 'core*' -type f -size +100k -newer /etc/gpubid/agent.toml") == ""


def test_a_stop_with_a_rent_under_way(box: Box) -> None:
    box.market("POST", "/weather", fault="slow", route="PUT /asks", delay=15)
    # Ready is said after the first cycle, which waits for the answer to its rent.
    box.out("systemctl start --no-block gpubid")
    box.until('gpubid fleet --json | grep -q \'"state": "sent"\'', "a rent that was sent")
    box.out("systemctl stop gpubid")
    assert box.guest.shows("Result") == "success"
    (contract,) = box.billing()
    assert "1 lease(s) go on billing $" in box.guest.journal()
    box.market("DELETE", "/weather")
    box.out("systemctl start gpubid")
    box.until('gpubid fleet --json | grep -q \'"state": "running"\'', "the lease, running")
    assert box.billing() == [contract]
    assert box.fleet()["in_doubt"] == []


def test_members_of_the_group_read_and_where_they_may_order(box: Box) -> None:
    box.out("systemctl start gpubid")
    box.until_billing()
    box.out("adduser --quiet --disabled-password --gecos '' mary && adduser --quiet mary gpubid-operators")
    box.out("adduser --quiet --disabled-password --gecos '' nobody2")
    assert json.loads(box.guest.out("gpubid fleet --json", user="mary"))["leases"]
    stranger = box.guest.run("gpubid fleet", user="nobody2")
    assert (stranger.returncode, "member of its group" in stranger.stderr) == (1, True), stranger
    uid = box.out("id -u mary").strip()
    refused = box.guest.run("gpubid drain train", user="mary")
    assert (refused.returncode, f"uid {uid} may read but not give orders" in refused.stderr) == (1, True), refused
    box.guest.write(CONFIG, LIVE + "[operators]\ngroup_may_order = true\n")
    box.out("systemctl restart gpubid")
    box.guest.out("gpubid drain train", user="mary")
    assert f"uid {uid}" in box.out("gpubid ledger events --json")


def test_a_full_disk_pays_for_nothing_and_a_read_only_one_says_so(box: Box) -> None:
    state = "/var/lib/private/gpubid"
    box.out(f"mkdir -p -m 700 /var/lib/private && mkdir -p {state} && mount -t tmpfs -o size=8m,mode=700 state {state}")
    box.guest.write(CONFIG, LIVE.replace("max_instances = 4", "max_instances = 0"))
    box.out("systemctl start gpubid")
    box.run(f"dd if=/dev/zero of={state}/filler bs=64k 2>/dev/null")
    box.guest.write(CONFIG, LIVE)
    box.out("systemctl reload gpubid")
    box.until("journalctl -o cat -u gpubid | grep -q unwritable", "a sentence about the disk")
    box.until(f"{box.paging('/metrics')} | grep -q 'gpubid_ledger_writable 0.0'", "a metric that says so")
    assert box.billing() == [], "it paid for what it could not write down"
    assert box.guest.shows("ActiveState") == "active"
    box.out(f"rm {state}/filler")
    (contract,) = box.until_billing()
    box.out("systemctl stop gpubid")
    assert box.billing() == [contract]

    box.out(f"mount -o remount,ro {state}")
    assert box.run("systemctl start gpubid").returncode != 0
    assert "read-only" in box.guest.journal().lower() or "cannot be written" in box.guest.journal()
    box.out(f"systemctl stop gpubid; systemctl reset-failed gpubid; mount -o remount,rw {state}")
    box.out("systemctl start gpubid")
    box.until('gpubid fleet --json | grep -q \'"state": "running"\'', "the lease, running")
    assert box.billing() == [contract]


def test_no_secret_is_anywhere_but_where_it_was_put(box: Box) -> None:
    marked = "hunter2-hunter2"
    box.guest.write("/etc/credstore/hf_token", f"{marked}-credential", "600")
    unit = "[Service]\nLoadCredential=hf_token\nWatchdogSec=3\nRestartSec=1\n"
    box.guest.write("/etc/systemd/system/gpubid.service.d/more.conf", unit)
    tables = f'[workloads.train.env]\nPIN = "{marked}-variable"\n[workloads.train.env_from]\nHF_TOKEN = "hf_token"\n'
    box.guest.write(CONFIG, LIVE + tables)
    box.out("systemctl daemon-reload && systemctl start gpubid")
    box.until_billing()
    for fault in ("html_403", "malformed", "reset"):
        box.market("POST", "/weather", fault=fault, route="*")
        box.out("systemctl reload gpubid")
        box.until("journalctl -o cat -u gpubid | grep -q market.unavailable", "an outage")
        box.market("DELETE", "/weather")
    box.out(
        "gpubid ledger backup /var/lib/gpubid/copy.sqlite && gpubid bug-report bundle.tar.gz && tar xf bundle.tar.gz"
    )
    box.out("kill -STOP $(systemctl show --property MainPID --value gpubid)")
    box.until("test $(systemctl show --property NRestarts --value gpubid) = 1", "the watchdog's bite")
    box.until("systemctl is-active gpubid", "a new start")
    for secret in (marked, DEFAULT_KEY):
        found = box.run(f"grep -rlaF {secret} /var /run /tmp /root --exclude-dir=credentials 2>/dev/null").stdout
        assert found == "", f"{secret} stands in {found}"
        assert secret not in box.out("journalctl --no-pager --all --output=json")
        assert secret not in box.out("ps axww -o args")
        for path in ("/metrics", "/", "/events", "/services"):
            assert secret not in box.page(path), path
        assert secret not in box.out("gpubid fleet --json; gpubid explain; gpubid doctor; gpubid ledger events --json")
    assert box.out("find / -xdev -name 'core*' -type f -size +100k -newer /etc/gpubid/agent.toml") == ""


def test_a_box_that_is_lost_comes_back_on_another(box: Box) -> None:
    box.out("systemctl start gpubid gpubid-backup.timer")
    (contract,) = box.until_billing()
    box.out("systemctl start gpubid-backup.service")
    (name,) = box.out("ls /var/lib/gpubid/backups").split()
    box.out(f"cp /var/lib/gpubid/backups/{name} /root/copy.sqlite && systemctl kill --signal=KILL gpubid")
    # Only the market and the copy are left.
    box.out("systemctl stop gpubid; apt-get purge --yes --quiet gpubid")
    box.install(box.packages.present)
    box.guest.write(CONFIG, LIVE)
    box.out("gpubid ledger restore /root/copy.sqlite && systemctl start gpubid")
    box.until('gpubid fleet --json | grep -q \'"state": "running"\'', "the lease, running")
    assert box.billing() == [contract]
    assert [lease["instance"] for lease in box.fleet()["leases"]] == [str(contract)]
    said = json.loads(box.run("gpubid doctor --json").stdout)
    named = {line["name"]: line["verdict"] for line in said["lines"]}
    assert (named["ledger"], named["key vast"], named["unit gpubid.service"]) == ("ok", "ok", "warn"), said


def materialised(dump: Path, folder: Path) -> Path:
    """Return the ledger that a dump describes, bound to no account: the market in the guest has another one."""
    made = folder / f"{dump.stem}.sqlite"
    keep_ledgers.make(dump.stem, made)
    with closing(sqlite3.connect(made)) as raw:
        raw.execute("DELETE FROM meta WHERE key LIKE 'account/%'")
        raw.commit()
    return made


def test_an_upgrade_keeps_what_there_was(empty: Box, earlier: str) -> None:
    empty.install(earlier)
    assert empty.out("gpubid --version") == f"gpubid {EARLIER}\n"
    empty.out(f"echo '# mine' >> {CONFIG} && systemctl enable --now gpubid gpubid-backup.timer")
    process = empty.guest.shows("MainPID")
    fleet = empty.out("cat /var/lib/gpubid/gpubid.sqlite.fleet")
    empty.install(empty.packages.present)
    empty.until("systemctl is-active gpubid gpubid-backup.timer", "both running again")
    assert empty.guest.shows("MainPID") != process
    assert empty.out("gpubid --version") == f"gpubid {__version__}\n"
    assert empty.out(f"tail -n 1 {CONFIG}") == "# mine\n"
    assert empty.out("cat /var/lib/gpubid/gpubid.sqlite.fleet") == fleet
    for dump in LEDGERS:
        _is_led_to_the_present_schema(empty, dump)


def _is_led_to_the_present_schema(box: Box, dump: Path) -> None:
    """Start the service on a ledger as an earlier release left it."""
    ledger = materialised(dump, box.packages.folder)
    box.out("systemctl stop gpubid && rm -f /var/lib/private/gpubid/gpubid.sqlite*")
    box.out(f"cp /mnt/{ledger.name} /var/lib/private/gpubid/gpubid.sqlite")
    box.out("chown --reference=/var/lib/private/gpubid /var/lib/private/gpubid/gpubid.sqlite")
    # There are more schemas by now than starts in ten minutes that systemd allows.
    box.out("systemctl reset-failed gpubid; systemctl start gpubid && gpubid ledger verify")
    assert box.out(f"ls /var/lib/private/gpubid/gpubid.sqlite.schema-{dump.stem}.sqlite")
    with sqlite3.connect(ledger) as link:
        held = {row[0] for row in link.execute("SELECT lease_id FROM leases")}
    link.close()
    assert held
    known = box.out("gpubid ledger events --json --limit 100000")
    assert all(lease in known for lease in held)


def test_nothing_is_left_after_a_purge_but_the_keys(box: Box) -> None:
    box.out("systemctl enable --now gpubid gpubid-backup.timer")
    before = box.until_billing()
    said = box.out("apt-get purge --yes --quiet gpubid")
    assert "what is rented goes on billing" in said
    assert box.billing() == before, "removing the program is no order to release"
    left = box.out("find /etc /usr /var/lib /run -xdev -path '*gpubid*' -not -path '/etc/gshadow*'")
    assert left == ""
    assert box.run("systemctl list-unit-files 'gpubid*' --no-legend").stdout == ""
    assert box.out("ls /etc/credstore").split() == ["vast_api_key"]
