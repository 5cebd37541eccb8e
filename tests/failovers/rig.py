"""The rig of a failover: a leader that will die at one step of one kind of write, and a standby that takes over."""

import asyncio
import contextlib
import json
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import aiohttp

from agent.act import crashpoint
from tests.failovers import history, judgement
from tests.support import boxes, stories
from tests.support.programs import Daemon

STEPS = ("recorded", "sent", "replied", "resolved")
KINDS = ("rebid", "rent", "resume", "pause", "release")
ROUNDS = tuple(tuple((STEPS[(first + place) % 4], kind) for place, kind in enumerate(KINDS)) for first in range(4))
"""Each kind of write once, at one step after another; four rounds play each step of each kind.

The rebid comes first: a market on which much was lost before makes on-demand or patience worth more than a raise.
"""
SPEED = 30.0
TRAIN, HEAVY = "train/0", "heavy/0"
HEAVY_TABLE = """
[workloads.heavy]
image = "alpine:latest"
image_gb = 40
disk_gb = 60
slots = 1
max_price = 0.5
strategy = "patient"
checkpoint = { at = "remote" }
"""
"""Its image loads for so long that a raised bid is cheaper than another host. On-demand costs more than its price."""
PATIENCE_SECONDS = 110.0
SETTLED_SECONDS, OUTBID_SECONDS, RESUMED_SECONDS = 2.0, 30.0, 40.0
"""How long an order, a rival and a resume may take to have their effect. A second is half a minute of the market."""
LOOKS_OF_A_PERSON = 3
"""How often a person looks. At the first look the leader may still wait for what its last order did."""
DYING_SECONDS = 300.0
"""How long a write is provoked again and again. One rival's bid takes over half a minute and may not do."""
SAID_SECONDS = 20.0
"""How long an order is given again to a leader that answers nothing, or that its ledger is away."""
SERVER_ERRORS = 500
WAITS = "wait for it to resume"
"""A part of the reason why a slot is paused whose host was taken by a rival."""

TABLES = {
    "intents": "SELECT to_jsonb(intents) FROM intents ORDER BY recorded_at",
    "leases": "SELECT to_jsonb(leases) FROM leases ORDER BY opened_at",
    "spend": "SELECT to_jsonb(spend) FROM spend",
    "events": "SELECT to_jsonb(events) FROM events ORDER BY event_id",
}
"""The rows of the ledger that are evidence."""


class Unprovoked(AssertionError):
    """The market gave the leader no reason for the write at which it was to die."""


class Rig:
    """A market, a fleet on two boxes, and the failovers so far."""

    def __init__(self, pair: boxes.Pair, environments: Sequence[dict[str, str]]) -> None:
        self.pair = pair
        self.leader = 0
        """The number of the box whose daemon leads."""
        self._environments = environments
        self._open: dict[int, contextlib.AsyncExitStack] = {}
        self.daemons: dict[int, Daemon] = {}
        self.blows: list[dict[str, Any]] = []
        """The market's time of each blow, and what was done."""
        self.gaps: list[tuple[float, float]] = []
        """The market's times between which nobody led, or a new leader had not had its first cycle."""
        self._struck_at: float | None = None
        self.logs: list[dict[str, Any]] = []
        """What each daemon wrote, by the number of its box."""

    async def begin(self) -> None:
        """Start the first leader, and wait until everything runs."""
        await boxes.until_led(await self.start(0))
        await self._run_again("that both workloads run")

    async def fail(self, step: str, kind: str) -> float | None:
        """Let the leader die at a step of a kind of write, and insist that the other daemon puts everything in order.

        Return the seconds from the kill to the end of the new leader's first cycle, although the daemons' own clocks
        run fast; nothing if the leader died before the other daemon stood by.
        """
        doomed, other = 1 - self.leader, self.leader
        # The doomed daemon takes over from its predecessor, which is then the standby.
        await boxes.until_standing_by(await self.start(doomed, **{crashpoint.VARIABLE: f"{step}:{kind}"}))
        await self.blown("handed over")
        await self.stop(other)
        is_leading = await _led(self.daemons[doomed])
        self.leader = doomed
        standby = await self.start(other)
        died: float | None = None
        if is_leading:
            await self.led()
            # From here on it may die by itself, such as in a move to a better host.
            await boxes.until_standing_by(standby)
            if self.daemons[doomed].process.returncode is None:
                died = await self._death(step, kind)
            else:
                await self.blown("died alone")
        await boxes.until_led(standby)
        gap = None if died is None else time.monotonic() - died
        await self.led()
        self.leader = other
        await self.stop(doomed)
        await self.settle(kind)
        return gap

    async def _death(self, step: str, kind: str) -> float:
        """Provoke the write at which the leader dies, and return when it died."""
        doomed = self.daemons[self.leader]
        provoking = asyncio.create_task(self.provoke(kind))
        try:
            code = await doomed.ended(DYING_SECONDS)
            died = time.monotonic()
            await self.blown(f"{step}:{kind}")
            assert code == -signal.SIGKILL, doomed.err[-20:]
        except TimeoutError:
            slots = json.dumps((await self.fleet())["slots"])
            raise Unprovoked(f"never came to {step}:{kind}: {slots}; {provoking}") from None
        finally:
            provoking.cancel()
            await asyncio.gather(provoking, return_exceptions=True)
        return died

    async def blown(self, what: str) -> None:
        """Write down that a leader was struck just now, or ends."""
        now = (await self.pair.market.truth())["now"]
        self.blows.append({"now": now, "what": what})
        self._struck_at = now if self._struck_at is None else self._struck_at

    async def led(self) -> None:
        """Write down that somebody leads again since a moment ago."""
        if self._struck_at is not None:
            self.gaps.append((self._struck_at, (await self.pair.market.truth())["now"]))
            self._struck_at = None

    async def evidence(self) -> dict[str, Any]:
        """Return the market's truth and log, the rows of the ledger, and what the daemons wrote."""
        tables = self._tables()
        turns = (await self._steer("GET", "/turns"))["turns"]
        logs = self.logs + [{"box": number, "lines": self.daemons[number].err} for number in self._open]
        struck = {"blows": self.blows, "gaps": self.gaps, "logs": logs}
        return {"truth": await self.pair.market.truth(), "turns": turns, "tables": tables, **struck}

    async def end(self) -> dict[str, Any]:
        """Stop every daemon, and return the evidence."""
        evidence = await self.evidence()
        for number in list(self._open):
            await self.stop(number)
        return evidence

    def rents(self) -> list[tuple[str, str, str]]:
        """Return id, state and outcome of the last three rents."""
        query = "SELECT intent_id, state, outcome FROM intents WHERE kind = 'rent' ORDER BY recorded_at DESC LIMIT 3"
        return [(str(intent), str(state), str(outcome)) for intent, state, outcome in reversed(self._rows(query))]

    async def requests(self) -> int:
        """Return how many requests to rent arrived."""
        return await self.pair.rents()

    async def settle(self, kind: str) -> None:
        """Undo what was provoked, and wait until everything runs again."""
        if kind == "pause":
            await self.until(lambda shown: not shown["in_doubt"], "that the pause is settled")
        if kind in {"pause", "resume"}:
            await self._say("resume", "train")
        await self._run_again(f"that everything runs after {kind}")
        live = [row for row in (await self.pair.market.truth())["contracts"] if row["ended"] is None]
        shown = await self.fleet()
        ours = sorted(str(row["id"]) for row in live)
        leases = sorted(str(each["instance"]) for each in shown["leases"] if each["state"] != "ended")
        assert ours == leases, f"the market has {ours}, the ledger {leases}"

    async def _run_again(self, what: str) -> None:
        """Wait until everything runs. If a host was taken and is worth waiting for, a person lets it go."""
        for _ in range(LOOKS_OF_A_PERSON):
            with contextlib.suppress(AssertionError):
                await self.until(is_whole, what, RESUMED_SECONDS)
                return
            for each in (await self.fleet())["slots"]:
                if each["state"] == "paused" and WAITS in each["why"]:
                    await self._say("release", each["slot"])
        await self.until(is_whole, what)

    async def provoke(self, kind: str) -> None:
        """Do what makes the leader write a request of this kind, until it dies on the way.

        Once may not do: a paused lease whose host is taken meanwhile is not resumed, and a lost bid not always raised.
        """
        with contextlib.suppress(aiohttp.ClientError):
            while True:
                await self._run_again(f"that everything runs before {kind}")
                if kind in {"rent", "release"}:
                    await self._say("release", TRAIN)
                elif kind == "rebid":
                    await self._outbid()
                else:
                    await self._say("pause", "train")
                    await self.until(lambda shown: _state(shown, "train") == "paused", "a pause")
                    await self._say("resume", "train")
                await asyncio.sleep(SETTLED_SECONDS)

    async def _outbid(self) -> None:
        """Let a rival bid more for the host of the heavy workload."""
        shown = await self.fleet()
        lease = next(each for each in shown["leases"] if each["slot"] == HEAVY)
        truth = await self.pair.market.truth()
        row = next(each for each in truth["contracts"] if str(each["id"]) == str(lease["instance"]))
        if row["bid"] is None:
            return
        rival = {"machine_id": row["machine_id"], "gpus": row["num_gpus"], "bid": row["bid"] * 1.1}
        number = (await self._steer("POST", "/rivals", rival))["id"]
        try:
            await asyncio.sleep(OUTBID_SECONDS)
        finally:
            await self._steer("DELETE", f"/rivals/{number}")

    async def _steer(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        async with (
            aiohttp.ClientSession() as link,
            link.request(method, self.pair.market.control_url + path, json=body) as reply,
        ):
            return dict(await reply.json())

    async def start(self, number: int, **changes: str) -> Daemon:
        stack = self._open[number] = contextlib.AsyncExitStack()
        self.daemons[number] = await stack.enter_async_context(
            self.pair.daemon(number, **{**self._environments[number], **changes})
        )
        return self.daemons[number]

    async def stop(self, number: int) -> None:
        daemon = self.daemons[number]
        if daemon.process.returncode is None:
            await daemon.stop()
        await self._open.pop(number).aclose()
        self.logs.append({"box": number, "lines": daemon.err})

    async def fleet(self) -> dict[str, Any]:
        """Return the fleet, as the leader's socket shows it."""
        return dict(await self._asked("GET", "/fleet"))

    async def _say(self, verb: str, target: str) -> None:
        """Give an order, again if the leader cannot take it just now."""
        deadline = time.monotonic() + SAID_SECONDS
        while True:
            try:
                await self._asked("POST", "/say", {"verb": verb, "target": target})
            except aiohttp.ClientError:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.2)
            else:
                return

    async def _asked(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        socket = self.pair.places[self.leader] / "ledger.sqlite.sock"
        async with (
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket))) as link,
            link.request(method, f"http://gpubid{path}", json=body) as reply,
        ):
            # A leader whose ledger is away says so with such a status.
            if reply.status >= SERVER_ERRORS:
                reply.raise_for_status()
            return await reply.json()

    async def until(
        self, is_so: Callable[[dict[str, Any]], bool], what: str, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        deadline, shown = time.monotonic() + patience_seconds, {}
        while time.monotonic() < deadline:
            with contextlib.suppress(aiohttp.ClientError):
                shown = await self.fleet()
                if is_so(shown):
                    return
            await asyncio.sleep(0.1)
        raise AssertionError(f"never seen: {what}; but {json.dumps(shown)[:3000]}")

    def intents(self) -> list[history.Ordered]:
        """Return the intents of the ledger."""
        return judgement.orders(self._tables()["intents"])

    def open_intents(self) -> int:
        """Return how many writes are on their way, or not settled yet."""
        return int(self._rows("SELECT count(*) FROM intents WHERE resolved_at IS NULL")[0][0])

    def beat(self, since: float) -> tuple[int, bool]:
        """Return the epoch that leads, and whether it began or beat after an instant, in seconds of Unix time."""
        ((epoch, beat_at),) = self._rows("SELECT epoch, extract(epoch FROM beat_at) FROM leader")
        return int(epoch), float(beat_at) > since

    async def calls(self) -> list[dict[str, Any]]:
        """Return the newest calls that the market got."""
        return list((await self.pair.market.truth())["calls"])

    def _tables(self) -> dict[str, list[dict[str, Any]]]:
        """Return the rows of the ledger at one instant."""
        import psycopg

        with psycopg.connect(self.pair.url, options=f"-csearch_path={self.pair.schema}") as raw:
            raw.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            return {name: [row for (row,) in raw.execute(query.encode())] for name, query in TABLES.items()}

    def _rows(self, query: str) -> list[Any]:
        import psycopg

        with psycopg.connect(self.pair.url, options=f"-csearch_path={self.pair.schema}") as raw:
            return raw.execute(query.encode()).fetchall()


async def _led(doomed: Daemon) -> bool:
    """Wait until a daemon has led a cycle, or has died in its first one. Return which."""
    led = asyncio.create_task(boxes.until_led(doomed))
    ended = asyncio.create_task(doomed.process.wait())
    await asyncio.wait({led, ended}, return_when=asyncio.FIRST_COMPLETED)
    for each in (led, ended):
        each.cancel()
    told = await asyncio.gather(led, ended, return_exceptions=True)
    if told[0] is None:
        return True
    assert doomed.process.returncode == -signal.SIGKILL, (told[0], doomed.err[-20:])
    return False


def _state(shown: dict[str, Any], workload: str) -> str:
    return next((str(each["state"]) for each in shown["slots"] if each["slot"] == f"{workload}/0"), "")


def is_whole(shown: dict[str, Any]) -> bool:
    """Return whether both workloads run, each on one lease, and nothing is in doubt."""
    runs = all(_state(shown, name) == "running" for name in ("train", "heavy"))
    return runs and not shown["in_doubt"] and len([each for each in shown["leases"] if each["state"] != "ended"]) == 2


@contextlib.asynccontextmanager
async def rig(
    place: Path, url: str, *options: str, seed: int = 1, networks: Sequence[str] = ("", "")
) -> AsyncIterator[Rig]:
    """Start a market with a fast clock, and the first leader. Each box may have a network namespace of its own."""
    async with stories.stage(place, SPEED, "--seed", str(seed), *options) as stage:
        pair = boxes.Pair(place, stage.market, url)
        for each in pair.places:
            text = (each / "agent.toml").read_text().replace('poll = "5s"', 'poll = "10s"')
            (each / "agent.toml").write_text(text + HEAVY_TABLE)
        common = {name: stage.box.environment[name] for name in ("PYTHONPATH", "STORY_CLOCK")} | {"STORY_SERVER": "1"}
        made = Rig(pair, [common | ({"STORY_NETWORK": name} if name else {}) for name in networks])
        await made.begin()
        try:
            yield made
        finally:
            for stack in list(made._open.values()):
                await stack.aclose()
