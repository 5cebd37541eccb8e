"""The daemon as a process of its own before a simulated market: its memory with 50 leases, its CPU share when idle."""

import asyncio
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import psutil  # type: ignore[import-untyped]

from agent.clock import SystemClock
from agent.domain.market.label import Label
from agent.domain.record.lease import Lease
from agent.domain.slot import Slot
from agent.ledger import reader
from agent.ledger.store import Ledger
from agent.markets import labels
from agent.simulator.vast.http import call_gate
from tests.bench import report

LEASES = 50
RENTED = 80
"""Some are lost before they run."""
WORKLOADS = 5
FLEET = "be7c4be7c4be"
MOST_GROWTH_MB, MOST_MB = 40.0, 130.0
MOST_CPU = 0.01
ADOPTED_WITHIN_SECONDS = 900.0
"""An instance is adopted after a look by its own id, and a market's reads are two seconds apart."""
SETTLE_SECONDS = 45.0
REST_SECONDS = 60.0
MEGABYTE = 1e6

CHILD = """
import sys
import agent.app, agent.cli.main, agent.cli.run, agent.cli.shared.session
import agent.config.loading, agent.daemon, agent.strategy_files
import agent.simulator.climate, agent.telemetry.logging, agent.telemetry.metric_updates, agent.web.web_server
import psutil
print(psutil.Process().memory_info().rss, flush=True)
agent.cli.main.main()
"""

CONFIG = """
[markets.vast]
url = "{url}"
credential_file = "{key}"
spend = true

[limits]
max_price_per_instance_hour = 5.00
max_fleet_per_hour = 200.00
max_per_day = 5000.00
max_per_month = 100000.00
max_instances = 100

[ledger]
path = "{ledger}"

[web]
listen = "127.0.0.1:0"
"""

WORKLOAD = """
[workloads.w{number}]
image = "ubuntu:22.04"
command = "sleep infinity"
slots = {slots}
verified = false
max_price = 5.00
strategy = "patient"
[workloads.w{number}.checkpoint]
at = "remote"
"""


async def measure() -> bool:
    """Print memory and CPU share; return whether they are within bounds."""
    with tempfile.TemporaryDirectory(prefix="gpubid-bench-") as made:
        directory = Path(made)
        async with _simulator() as told:
            await _fill(told)
            ledger = await Ledger.open(directory / "ledger.sqlite", clock=SystemClock(), fleet_id=FLEET)
            await ledger.close()
            file = _configure(directory, told["vast_url"])
            async with _child(["-c", CHILD, "run", "--config", str(file), "--level", "ERROR"]) as daemon:
                return await _watch(daemon, directory / "ledger.sqlite")


async def _watch(daemon: asyncio.subprocess.Process, ledger: Path) -> bool:
    assert daemon.stdout is not None
    imported = int(await daemon.stdout.readline())
    process = psutil.Process(daemon.pid)
    await _adopted(ledger)
    await asyncio.sleep(SETTLE_SECONDS)
    used, began, most = _cpu(process), time.monotonic(), 0
    while time.monotonic() - began < REST_SECONDS:
        most = max(most, process.memory_info().rss)
        await asyncio.sleep(1.0)
    share = (_cpu(process) - used) / (time.monotonic() - began)
    held = await _leases(ledger)
    grown, total = (most - imported) / MEGABYTE, most / MEGABYTE
    print(
        f"the daemon with {len(held)} leases, {sum(lease.has_run for lease in held)} of them running, a poll every 15 s"
    )
    if len(held) < LEASES:
        print(f"  fewer than {LEASES}: the market took the others; these figures prove nothing")
    first = report.line(
        "memory over the same process after its imports",
        f"{grown:.0f} MB over {imported / MEGABYTE:.0f} MB",
        f"at most {MOST_GROWTH_MB:.0f} MB more",
        holds=grown <= MOST_GROWTH_MB,
    )
    second = report.line("memory in all", f"{total:.0f} MB", f"at most {MOST_MB:.0f} MB", holds=total <= MOST_MB)
    third = report.line(
        f"CPU at rest over {REST_SECONDS:.0f} s of real time",
        f"{share * 100:.2f} % of a core",
        f"at most {MOST_CPU * 100:.0f} %",
        holds=share <= MOST_CPU,
    )
    return first and second and third and len(held) >= LEASES


async def _adopted(path: Path) -> None:
    """Wait until the daemon holds ``LEASES`` leases, for at most ``ADOPTED_WITHIN_SECONDS``."""
    began = time.monotonic()
    while time.monotonic() - began < ADOPTED_WITHIN_SECONDS:
        if len(await _leases(path)) >= LEASES:
            return
        await asyncio.sleep(2.0)


async def _leases(path: Path) -> list[Lease]:
    """Return the leases the daemon holds."""
    ledger = await reader.open_reader(path)
    try:
        return [lease for lease in await ledger.leases() if lease.is_open]
    finally:
        await ledger.close()


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@contextlib.asynccontextmanager
async def _simulator() -> AsyncIterator[dict[str, str]]:
    """Serve a market that began two hours ago and has caught up with now."""
    start = datetime.now(UTC) - timedelta(hours=2)
    options = ["simulate", "--climate", "calm", "--hosts", "400", "--credit", "1000", "--start", start.isoformat()]
    async with _child(["-m", "agent", *options]) as simulator:
        assert simulator.stdout is not None
        yield json.loads(await simulator.stdout.readline())


async def _fill(told: dict[str, str]) -> None:
    """Rent as many instances as there are slots, each under the label of its slot, and let them start."""
    headers = {"Authorization": f"Bearer {call_gate.DEFAULT_KEY}"}
    async with aiohttp.ClientSession(headers=headers) as session:
        question = {"rentable": {"eq": True}, "num_gpus": {"eq": 1}, "type": "bid", "limit": 512}
        found = await _call(session, "POST", f"{told['vast_url']}/api/v0/bundles/", question)
        rows = {row["machine_id"]: row for row in found["offers"] if row["min_bid"]}
        for number, row in enumerate(list(rows.values())[:RENTED]):
            place = Slot(f"w{number % WORKLOADS}", number // WORKLOADS)
            terms = {
                "image": "ubuntu:22.04",
                "disk": 20.0,
                "price": round(row["min_bid"] * 3 + 0.01, 4),
                "label": labels.text(Label(FLEET, place, f"{number:016x}")),
            }
            await _call(session, "PUT", f"{told['vast_url']}/api/v0/asks/{row['id']}/", terms)
        await _call(session, "POST", f"{told['control_url']}/advance", {"seconds": 7200})


async def _call(session: aiohttp.ClientSession, method: str, url: str, body: Any) -> Any:
    async with session.request(method, url, json=body) as response:
        response.raise_for_status()
        return await response.json()


def _configure(directory: Path, url: str) -> Path:
    key = directory / "key"
    key.write_text(call_gate.DEFAULT_KEY)
    key.chmod(0o600)
    text = CONFIG.format(url=url, key=key, ledger=directory / "ledger.sqlite")
    for number in range(WORKLOADS):
        text += WORKLOAD.format(number=number, slots=RENTED // WORKLOADS)
    file = directory / "agent.toml"
    file.write_text(text)
    return file


@contextlib.asynccontextmanager
async def _child(arguments: list[str]) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
