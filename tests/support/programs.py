"""The product as its user runs it: real processes, and a simulated market in a separate process."""

import asyncio
import contextlib
import dataclasses
import datetime as dt
import inspect
import itertools
import json
import os
import re
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import aiohttp

from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from tests.support import launch

PATIENCE_SECONDS = 120.0
"""The longest wait. On an idle machine waits end within a few seconds."""
PAUSE_SECONDS = 0.05
LONG_PAUSE_SECONDS = 0.15
"""The pause of whoever has waited for a second and a half: each question costs the asked program processor time too."""
BEHIND_SECONDS = 50
"""Seconds by which a market's clock starts behind ours. It may move by twice as much before it is too far off."""
WRITES = {"PUT", "DELETE"}
_MANAGERS = itertools.count()

LIVE = """\
[agent]
poll = "5s"
[markets.vast]
url = "{url}"
credential = "vast_api_key"
spend = true
[limits]
max_price_per_instance_hour = 0.90
max_fleet_per_hour = 3.00
max_per_day = 12.00
max_per_month = 250.00
max_instances = 4
[ledger]
path = "ledger.sqlite"
[web]
listen = "127.0.0.1:0"
[workloads.train]
image = "alpine:latest"
image_gb = 0.01
disk_gb = 10
slots = 1
max_price = 0.8
strategy = "patient"
checkpoint = {{ at = "remote" }}
"""
"""A live configuration of one small workload; `url` is the market's."""


async def until(ask: Callable[[], Any], what: str) -> Any:
    """Return the first true answer, asked for a bounded time, and less often the longer it takes."""
    began = time.monotonic()
    while True:
        answer = ask()
        value = await answer if inspect.isawaitable(answer) else answer
        if value:
            return value
        waited = time.monotonic() - began
        assert waited < PATIENCE_SECONDS, f"never seen: {what}"
        await asyncio.sleep(min(max(PAUSE_SECONDS, waited / 10), LONG_PAUSE_SECONDS))


@dataclasses.dataclass(frozen=True, slots=True)
class Ran:
    """The exit code and the output of a program."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The standard output, read as JSON."""
        return json.loads(self.out)


def environment(home: Path, **changes: str | None) -> dict[str, str]:
    """Return the environment of a user who has a key. None removes a variable."""
    kept = {
        name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "TMPDIR"} or name[:3] == "COV"
    }
    kept |= {"HOME": str(home), "COLUMNS": "200", "VAST_API_KEY": DEFAULT_KEY}
    return {name: value for name, value in (kept | changes).items() if value is not None}


def command(*arguments: str | Path) -> list[str]:
    """Return the command line of a verb."""
    return [sys.executable, "-m", "agent", *map(str, arguments)]


async def gpubid(place: Path, *arguments: str | Path, **changes: str | None) -> Ran:
    """Run a verb in `place` to its end."""
    words = map(str, arguments)
    process = await launch.start("agent", *words, folder=place, environment=environment(place, **changes))
    try:
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE_SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
    return Ran(process.returncode or 0, out.decode(), err.decode())


def asked_as(uid: int, gid: int, path: Path, method: str, route: str, body: str = "") -> str:
    """Send a request to a Unix socket as another user and group, as root. Return the answer or the error."""
    there, here = os.pipe()
    child = os.fork()
    if child == 0:
        said = b"died"
        try:
            os.setgroups([])
            os.setgid(gid)
            os.setuid(uid)
            with socket.socket(socket.AF_UNIX) as link:
                link.connect(str(path))
                head = f"{method} {route} HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n{body}"
                link.sendall(head.encode())
                said = b"".join(iter(lambda: link.recv(65_536), b""))
        except OSError as error:
            said = type(error).__name__.encode()
        finally:
            with os.fdopen(here, "wb") as out:
                out.write(said)
            os._exit(0)
    os.close(here)
    with os.fdopen(there, "rb") as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said.decode()


class Market:
    """A simulated market that runs as a process and is steered through its control API."""

    def __init__(self, urls: Mapping[str, str], link: aiohttp.ClientSession) -> None:
        self.url = urls["vast_url"]
        self.control_url = urls["control_url"]
        self.first_line = urls
        self._link = link

    async def truth(self) -> dict[str, Any]:
        """Return the truth of the whole market."""
        async with self._link.get(f"{self.control_url}/truth") as reply:
            return dict(await reply.json())

    async def billing(self) -> list[int]:
        """Return the contracts that bill now."""
        return list((await self.truth())["billing_now"])

    async def writes(self) -> list[tuple[str, str]]:
        """Return every order that arrived: (method, path). A log is asked for with a PUT too, and is none."""
        calls = [(call["method"], call["path"]) for call in (await self.truth())["calls"] if call["method"] in WRITES]
        return [(method, path) for method, path in calls if "/request_logs/" not in path]

    async def advance(self, seconds: float) -> None:
        """Move the market's clock."""
        await self._post("/advance", {"seconds": seconds})

    async def catch_up(self) -> None:
        """Move the market's clock to its intended start, independent of the time that the program took to start."""
        meant = time.time() - BEHIND_SECONDS
        await self.advance(max(meant - (await self.truth())["now"], 0.0))

    async def weather(self, fault: str, **fields: Any) -> None:
        """Start a fault that lasts until `still`."""
        await self._post("/weather", {"fault": fault, **fields})

    async def still(self) -> None:
        """End all weather."""
        async with self._link.delete(f"{self.control_url}/weather") as reply:
            assert reply.status == 200

    async def _post(self, path: str, body: Mapping[str, Any]) -> None:
        async with self._link.post(self.control_url + path, json=body) as reply:
            assert reply.status == 200, await reply.text()


@contextlib.asynccontextmanager
async def market(place: Path, *arguments: str) -> AsyncIterator[Market]:
    """Start `gpubid simulate` and stop it at the end. Of an option that is given twice, the last value counts."""
    start = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=BEHIND_SECONDS)
    words = ("simulate", "--climate", "calm", "--hosts", "60", "--start", start.isoformat(), *arguments)
    process = await launch.start("agent", *words, folder=place, environment=environment(place), stderr=None)
    assert process.stdout is not None
    try:
        urls = json.loads(await asyncio.wait_for(process.stdout.readline(), PATIENCE_SECONDS))
        async with aiohttp.ClientSession() as link:
            it = Market(urls, link)
            if "--start" not in arguments:
                await it.catch_up()
            yield it
    finally:
        process.terminate()
        await process.wait()


class Daemon:
    """`gpubid run` as a process, with the service manager that starts it."""

    def __init__(self, process: launch.Process, manager: socket.socket) -> None:
        self.process = process
        self.out: list[str] = []
        self.err: list[str] = []
        self.told: list[str] = []
        self._manager = manager
        assert process.stdout is not None
        assert process.stderr is not None
        self._reading = [
            asyncio.ensure_future(_collect(process.stdout, self.out)),
            asyncio.ensure_future(_collect(process.stderr, self.err)),
        ]

    def messages(self) -> list[str]:
        """Return every datagram that the service manager got so far."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self.told.append(self._manager.recv(4096).decode())
        return self.told

    def logs(self, event: str = "") -> list[dict[str, Any]]:
        """Return the log lines, or those of one event."""
        lines = [json.loads(line) for line in self.err]
        return [line for line in lines if not event or line["event"] == event]

    async def until_told(self, line: str, times: int = 1) -> None:
        """Wait until the service manager got a line that many times."""
        await until(lambda: self._lives() and self._told(line) >= times, f"{line} x{times}: {self.err[-5:]}")

    async def until_logged(self, event: str, times: int = 1) -> list[dict[str, Any]]:
        """Wait until an event was logged that many times."""
        await until(lambda: len(self.logs(event)) >= times or not self._lives(), f"{event} x{times}: {self.err[-5:]}")
        return self.logs(event)

    def _told(self, line: str) -> int:
        return sum(line in told.split("\n") for told in self.messages())

    def _lives(self) -> bool:
        assert self.process.returncode is None, "\n".join([f"ended with {self.process.returncode}", *self.err[-20:]])
        return True

    async def page(self, path: str = "/metrics") -> str:
        """Read one of its pages."""
        url = await until(lambda: re.search(r"metrics at (\S+)/metrics", "\n".join(self.out)), "its address")
        async with aiohttp.ClientSession() as link, link.get(url[1] + path) as reply:
            return await reply.text()

    async def figure(self, name: str) -> float:
        """Return one metric without labels."""
        found = re.search(rf"^{name} (\S+)$", await self.page(), re.MULTILINE)
        assert found is not None, name
        return float(found[1])

    async def reload(self) -> None:
        """Send SIGHUP and wait until the reload has ended."""
        ready, said = self._told("READY=1"), self._verdicts()
        self.process.send_signal(signal.SIGHUP)
        await self.until_told("READY=1", ready + 1)
        await until(lambda: self._verdicts() > said, "what it says of the reload")

    def _verdicts(self) -> int:
        return len(self.logs("config.refused")) + len(self.logs("config.reloaded"))

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it and return its exit code."""
        if self.process.returncode is None:
            self.process.send_signal(number)
        return await self.ended()

    async def ended(self, patience_seconds: float = PATIENCE_SECONDS) -> int:
        """Wait for its end and return its exit code."""
        code = await asyncio.wait_for(self.process.wait(), patience_seconds)
        await asyncio.gather(*self._reading)
        return code


async def _collect(stream: asyncio.StreamReader, lines: list[str]) -> None:
    while line := await stream.readline():
        lines.append(line.decode().rstrip("\n"))


@contextlib.asynccontextmanager
async def daemon(place: Path, *arguments: str | Path, **changes: str | None) -> AsyncIterator[Daemon]:
    """Start `gpubid run` in `place`. At the end stop it, or kill it if it does not stop."""
    address = place / f"n{next(_MANAGERS)}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.setblocking(False)
        manager.bind(str(address))
        its_own = environment(place, **{"NOTIFY_SOCKET": str(address), **changes})
        process = await launch.start("agent", "run", *map(str, arguments), folder=place, environment=its_own)
        running = Daemon(process, manager)
        try:
            yield running
        except BaseException:
            # Its output explains a failed test.
            print("\n".join([*running.out, *running.err]))
            raise
        finally:
            if process.returncode is None:
                process.kill()
            await running.ended()


@contextlib.asynccontextmanager
async def running(
    place: Path, *arguments: str, config: str = LIVE, **changes: str | None
) -> AsyncIterator[tuple[Market, Daemon]]:
    """Start a market and a daemon on it, and wait until the daemon is ready. `changes` are the daemon's environment."""
    async with market(place) as it:
        (place / "agent.toml").write_text(config.format(url=it.url))
        async with daemon(place, *arguments, **changes) as mine:
            await mine.until_told("READY=1")
            yield it, mine
