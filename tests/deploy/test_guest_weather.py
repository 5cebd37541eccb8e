"""What goes wrong around the daemon in a booted Debian: its clock jumps, Prometheus goes, its webhook is flooded."""

import json
import re
from pathlib import Path

import pytest

from tests.deploy.conftest import LIVE, Box

pytestmark = pytest.mark.guest

CLOCK = "/run/wall-clock"
DAY = 86_400
UNIT = "/etc/systemd/system/gpubid.service.d/test.conf"
# The guest has its host's clock, which we may not set. The daemon alone gets another one, by each file that it reads.
FALSE_CLOCK = f"""\
[Service]
Environment=LD_PRELOAD=/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1
Environment=FAKETIME_TIMESTAMP_FILE={CLOCK} FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 DONT_FAKE_MONOTONIC=1
"""
SECRET = "hunter2-of-the-webhook"
ROUNDS = 1500
MOST_MB, MOST_THREADS, MOST_FILES = 400, 40, 300
PROMETHEUS = (
    "import urllib.request as u, json; "
    "q = 'http://127.0.0.1:9090/api/v1/query?query=up%7Bjob%3D%22gpubid%22%7D'; "
    "print([row['value'][1] for row in json.load(u.urlopen(q))['data']['result']])"
)
SCRAPED = f'/usr/bin/python3 -c "{PROMETHEUS}" | grep -q "1"'


def figure(box: Box, name: str) -> float:
    """Return one metric without labels."""
    found = re.search(rf"^{name} (\S+)$", box.page("/metrics"), re.MULTILINE)
    assert found is not None, name
    return float(found[1])


def goes_on(box: Box) -> None:
    """Wait until a further cycle has ended well."""
    before = figure(box, "gpubid_cycle_last_success_timestamp_seconds")
    later = (
        f"{box.paging('/metrics')} | awk '/^gpubid_cycle_last_success_timestamp_seconds/ {{ exit !($2 > {before}) }}'"
    )
    box.until(later, "a further cycle")


def test_a_clock_that_jumps_a_day_ahead_and_back(box: Box) -> None:
    box.guest.write(CLOCK, "+0\n")
    box.guest.write(UNIT, FALSE_CLOCK)
    box.out("systemctl daemon-reload && systemctl start gpubid")
    (contract,) = box.until_billing()
    process = box.guest.shows("MainPID")
    for jump in (DAY, -DAY):
        box.guest.write(CLOCK, f"{jump:+d}\n")
        box.until("gpubid fleet --json | grep -q clock_skew", "a sentence about the clock")
        goes_on(box)
        assert box.billing() == [contract], "a clock that jumps is no loss"
        shown = box.fleet()
        assert shown["spent_today_dollars"] < 0.1, "a day that never was is billed"
        assert shown["in_doubt"] == []
        box.guest.write(CLOCK, "+0\n")
        box.until("! gpubid fleet --json | grep -q clock_skew", "the clock, right again")
    # Paying waits for the right time, and ending does not.
    box.guest.write(CLOCK, f"{DAY:+d}\n")
    box.until("gpubid fleet --json | grep -q clock_skew", "a sentence about the clock")
    box.out("gpubid release train")
    for _ in range(2):
        goes_on(box)
    assert box.billing() == [], "it paid under a clock that is a day off"
    assert (box.guest.shows("MainPID"), box.guest.shows("NRestarts")) == (process, "0")
    box.out("systemctl restart gpubid")
    box.until("gpubid fleet --json | grep -q clock_skew", "a sentence about the clock after a start")
    assert box.billing() == []
    box.guest.write(CLOCK, "+0\n")
    (second,) = box.until_billing()
    assert second != contract
    box.until('gpubid fleet --json | grep -q \'"state": "running"\'', "the new lease, running")
    assert len(box.fleet()["leases"]) == 1


def test_prometheus_goes_and_a_flood_comes(box: Box) -> None:
    box.guest.write("/etc/credstore/vast_webhook", SECRET, "600")
    box.guest.write(UNIT, "[Service]\nLoadCredential=vast_webhook\n")
    box.guest.write("/etc/gpubid/agent.toml", LIVE.replace("[web]", '[web]\nwebhook_credential = "vast_webhook"'))
    box.out("gpubid deploy show alerts --to /etc/prometheus")
    box.out("gpubid deploy show scrape > /etc/prometheus/prometheus.yml")
    box.out("systemctl daemon-reload && systemctl start gpubid && systemctl restart prometheus")
    before = box.until_billing()
    box.until(SCRAPED, "a scrape")
    box.out("systemctl kill --signal=KILL prometheus; systemctl stop prometheus")
    goes_on(box)
    box.out("systemctl start prometheus")
    box.until(SCRAPED, "a scrape of the same daemon by a new Prometheus")

    looks = _listings(box)
    box.guest.write("/root/flood.py", (Path(__file__).parent / "flood.py").read_text())
    found = json.loads(box.out(f"/usr/bin/python3 /root/flood.py 9477 {SECRET} {ROUNDS}"))
    assert found.pop("new 204") == ROUNDS
    assert found.pop("again 204") == ROUNDS
    assert found.pop("forged 401") == ROUNDS
    assert found.pop("large 413", 0) + found.pop("large cut", 0) == ROUNDS
    assert found == {}
    process = box.guest.shows("MainPID")
    status = box.out(f"cat /proc/{process}/status")
    held = {name: int(number) for name, number in re.findall(r"^(VmHWM|Threads):\s+(\d+)", status, re.MULTILINE)}
    assert held["VmHWM"] < MOST_MB * 1024, held
    assert held["Threads"] < MOST_THREADS, held
    assert int(box.out(f"ls /proc/{process}/fd | wc -l")) < MOST_FILES
    goes_on(box)
    assert _listings(box) > looks, "a new delivery wakes the next look"
    assert (box.guest.shows("ActiveState"), box.guest.shows("NRestarts")) == ("active", "0")
    assert box.billing() == before, "deliveries of a flood prove nothing"
    assert [lease["instance"] for lease in box.fleet()["leases"]] == [str(before[0])]
    box.until(SCRAPED, "a scrape after the flood")
    assert SECRET not in box.out("journalctl --no-pager --all --output=json")


def _listings(box: Box) -> int:
    """Return how often the market's list was asked for."""
    return sum("/instances" in call["path"] for call in box.market("GET", "/truth")["calls"] if call["method"] == "GET")
