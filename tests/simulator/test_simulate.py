"""`gpubid simulate` as a program: one line, then it serves; bad input is reported and ends with 2."""

import asyncio
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.cli.rehearsing import simulate
from agent.simulator import climate_files
from agent.simulator.market_server import Simulator
from tests.support import counter, launch
from tests.support.programs import PATIENCE_SECONDS, until

MODULE = "agent.cli.rehearsing.simulate"
COMMAND = [sys.executable, "-m", MODULE]


@pytest.fixture
def program() -> Iterator[subprocess.Popen[str]]:
    arguments = ["--hosts", "20", "--speed", "0", "--start", "2026-11-05T00:00:00Z", "--seed", "3"]
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        yield running
        running.kill()


def fetch(url: str, key: str = "") -> Any:
    asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"} if key else {})  # noqa: S310 - loopback
    with urllib.request.urlopen(asked, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310 - loopback
        return json.loads(answer.read()), answer.headers


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_prints_one_line_serves_and_ends_with_0(program: subprocess.Popen[str], number: signal.Signals) -> None:
    assert program.stdout is not None
    urls = json.loads(program.stdout.readline())
    assert urls.keys() == {
        "vast_url",
        "vast_key",
        "runpod_url",
        "runpod_key",
        "mithril_url",
        "mithril_key",
        "dstack_url",
        "dstack_key",
        "control_url",
    }
    offers, headers = fetch(f"{urls['vast_url']}/api/v0/bundles/?q=%7B%7D")
    assert offers["offers"]
    assert headers["Date"] == "Thu, 05 Nov 2026 00:00:00 GMT"
    with pytest.raises(urllib.error.HTTPError, match="401"):
        fetch(f"{urls['runpod_url']}/v2/pods")
    assert fetch(f"{urls['vast_url']}/api/v0/users/current/", urls["vast_key"])[0]["credit"] > 0
    assert fetch(f"{urls['runpod_url']}/v2/pods", urls["runpod_key"])[0]["pods"] == []
    assert fetch(f"{urls['mithril_url']}/v2/spot/bids", urls["mithril_key"])[0]["data"] == []
    truth, _ = fetch(f"{urls['control_url']}/truth")
    assert truth["dstack"]["contracts"] == []
    assert truth["contracts"] == truth["runpod"]["contracts"] == truth["mithril"]["contracts"] == []
    program.send_signal(number)
    out, err = program.communicate(timeout=PATIENCE_SECONDS)
    assert (program.returncode, out, err) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--climate", "nowhere"], "calm"),
        (["--start", "yesterday"], "ISO"),
        (["--rate-limits", "strict"], "published"),
        (["--speed", "-1"], "--speed"),
        (["--runpod-mode", "spot"], "spot_discontinued"),
        (["--hosts", "0"], "--hosts"),
        (["--vast-port", "70000"], "--vast-port"),
        (["--climate", "real_processes", "--speed", "31"], "1 to 30"),
        (["--climate", "real_processes", "--speed", "0"], "1 to 30"),
        (["--climate", "real_processes", "--disks", "/dev/null/disks"], "--disks"),
        (["--disks", "disks"], "no processes"),
    ],
)
async def test_bad_input_is_told_and_ends_with_2(tmp_path: Path, arguments: list[str], word: str) -> None:
    code, out, err = await ended(tmp_path, *arguments)
    assert code == 2
    assert out == ""
    assert word in err
    assert "Traceback" not in err


async def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, out, err = await ended(tmp_path, "--hosts", "5", "--vast-port", str(taken.getsockname()[1]))
    assert (code, out) == (2, "")
    assert "a port is not free" in err


def test_another_failure_of_the_machine_is_not_told_as_a_port(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(Simulator, "advance_to", fail)
    with pytest.raises(OSError, match="no space"):
        simulate.simulate(hosts=5)


async def ended(place: Path, *arguments: str) -> tuple[int | None, str, str]:
    """Run it to its end; return its exit code and its output."""
    process = await launch.start(MODULE, *arguments, folder=place, environment=os.environ)
    try:
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE_SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
    return process.returncode, out.decode(), err.decode()


async def told_by(place: Path, option: str) -> str:
    """Return what an option prints."""
    code, out, err = await ended(place, option)
    assert code == 0, err
    return out


async def test_about_tells_recorded_from_assumed(tmp_path: Path) -> None:
    told = await told_by(tmp_path, "--about")
    assert "Recorded (" in told
    assert "Assumed (" in told


async def test_help_names_the_keys_and_every_climate_with_what_it_does(tmp_path: Path) -> None:
    told = await told_by(tmp_path, "--help")
    words = " ".join(told.split())
    assert "vast_key" in words
    assert "runpod_key" in words
    assert "mithril_key" in words
    for name in climate_files.names():
        assert f"{name} {climate_files.named(name).about}" in words


async def test_weather_lists_every_fault_and_how_fields_lie(tmp_path: Path) -> None:
    from agent.simulator import faults

    told = await told_by(tmp_path, "--weather")
    assert [name for name in faults.PARAMETERS if f"| {name} |" not in told] == []
    assert "twice_changed" in told


def call(url: str, key: str, method: str, body: Any = None) -> Any:
    sent = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    asked = urllib.request.Request(url, sent, headers, method=method)  # noqa: S310 - loopback
    with urllib.request.urlopen(asked, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310 - loopback
        return json.loads(answer.read())


async def counting(urls: Any, mark: str, disks: Path) -> None:
    """Rent on demand, which nobody displaces, and wait until the container counts on its disk."""
    vast, key = f"{urls['vast_url']}/api/v0", urls["vast_key"]
    found = call(f"{vast}/bundles/", key, "POST", {"rentable": {"eq": True}, "type": "on-demand", "limit": 64})
    terms = {"image": "alpine", "disk": 16.0, "price": None, "runtype": "args", "args": counter.command(mark)}
    made = call(f"{vast}/asks/{found['offers'][0]['id']}/", key, "PUT", terms)["new_contract"]

    def has_counted() -> bool:
        call(f"{urls['control_url']}/advance", "", "POST", {"seconds": 30})
        return any(counter.counted(disk) > 0 for disk in disks.glob(f"*/vast-{made}"))

    await until(has_counted, "a count on the disk")


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.nightly), signal.SIGKILL]
)
async def test_real_processes_run_on_its_disks_and_end_with_it(tmp_path: Path, number: signal.Signals) -> None:
    mark, disks = uuid.uuid4().hex, tmp_path / "disks"
    arguments = ["--climate", "real_processes", "--disks", str(disks), "--start", "2026-11-05T00:00:00Z", "--seed", "3"]
    program = await asyncio.create_subprocess_exec(*COMMAND, *arguments, stdout=asyncio.subprocess.PIPE)
    try:
        assert program.stdout is not None
        urls = json.loads(await asyncio.wait_for(program.stdout.readline(), PATIENCE_SECONDS))
        await counting(urls, mark, disks)
        assert len(counter.alive(mark)) == 1
        program.send_signal(number)
        assert await asyncio.wait_for(program.wait(), PATIENCE_SECONDS) == (-number if number is signal.SIGKILL else 0)
    finally:
        if program.returncode is None:
            program.kill()
    await until(lambda: counter.alive(mark) == [], "the death of all")
    # Who is killed cannot tidy up.
    assert len(os.listdir(disks)) == (number is signal.SIGKILL)  # noqa: PTH208 - a quick look
