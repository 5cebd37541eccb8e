"""`python -m tests.storm`: kill -9 of the real daemon, sixty times a market, in bad weather; 1 if anything is wrong.

Each market has a process of its own, whose clock and the daemon's run fast. A turn draws a transport fault, a lie about
a field and now and then a blow to what runs, starts `gpubid run`, and kills it while it starts, just after it wrote to
the market, or at some other time. Then the weather clears, a last daemon runs, and a judge who knows the truth looks.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp

from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from tests.storm import clouds, judge, weather
from tests.support import programs, stories
from tests.support.programs import LIVE

KILLS = 60
CALM_MINUTES = 75
"""After the weather: the grace of a doubt is ten minutes, patience with a market's fault an hour."""
LOOK_SECONDS = 0.05
MOST_SECONDS = 60.0
"""A daemon may take so long to start, of our seconds: the machine may be busy."""
LIVES = (20.0, 400.0)
"""Simulated seconds from its readiness to its death: some long enough to prove an absence, which takes two minutes."""
RUNPOD = LIVE.replace("[markets.vast]", "[markets.runpod]").replace("vast_api_key", "runpod_api_key")
MITHRIL = LIVE.replace("[markets.vast]", '[markets.mithril]\nproject = "{project}"\ndisk_per_gb_month = 0').replace(
    "vast_api_key", "mithril_api_key"
)
"""The simulated market bills nothing for a kept boot disk."""
POOLS = ("auc_simulated00001", "auc_simulated00003", "auc_simulated00004")
"""Those of single GPUs."""
HAND = {"instance_type": "it_RrgkIZz6c9BZu5gi", "region": "us-central3-a", "instance_quantity": 1, "name": "by-hand"}
SLOTS = 3
PERSON_EVERY = 5
"""A person looks at the consoles of the clouds in every so many lives."""
CHANGES = (
    ('poll = "5s"', 'poll = "10s"'),
    ("slots = 1", f"slots = {SLOTS}"),
    ("max_instances = 4", "max_instances = 8"),
)


class Storm:
    """One market, one daemon after another."""

    def __init__(self, market: str, stage: stories.Stage, seed: int) -> None:
        self.stage = stage
        self.seen = judge.Watched(market)
        self._draw = random.Random(f"{seed}/{market}")
        self._place = stage.box.place
        urls = stage.market.first_line
        self._url = urls[f"{market}_url"]
        self._project = ""
        stage.box.environment["RUNPOD_API_KEY"] = urls.get("runpod_key", DEFAULT_KEY)
        stage.box.environment["MITHRIL_API_KEY"] = urls.get("mithril_key", DEFAULT_KEY)
        stage.box.environment["DSTACK_API_KEY"] = urls.get("dstack_key", DEFAULT_KEY)

    async def _configure(self) -> None:
        """Write the configuration of the daemon."""
        self._project = str((await self.stage.market.truth())["mithril"]["project"])
        configs = {
            "vast": LIVE,
            "runpod": RUNPOD.replace(*stories.ON_DEMAND),
            "mithril": MITHRIL,
            clouds.MARKET: clouds.CONFIG,
        }
        text = configs[self.seen.market].format(url=self._url, project=self._project)
        for old, new in (*CHANGES, *(clouds.ROOM if self.seen.market == clouds.MARKET else ())):
            assert old in text, old
            text = text.replace(old, new)
        (self._place / "agent.toml").write_text(text)

    async def blow(self, kills: int) -> judge.Verdict:
        """Kill so many daemons, clear the weather, and judge."""
        await self._configure()
        await self._live(0, is_first=True)
        self.seen.foreign = await self._by_hand()
        for turn in range(1, kills):
            await self._turn(turn)
        await self.stage.market.still()
        return await self._calm()

    async def truth(self) -> dict[str, Any]:
        """Return everything as it really is at this market."""
        told = await self.stage.market.truth()
        found = told if self.seen.market == "vast" else {**told[self.seen.market], "now": told["now"]}
        self.seen.see(found)
        return found

    async def _turn(self, turn: int) -> None:
        for fields in self._weather():
            await self.stage.market.weather(**fields)
        await self._live(turn)
        say(f"{self.seen.market} kill {turn + 1}: {len(self.seen.label_of) - 1} rented so far")

    def _weather(self) -> list[dict[str, Any]]:
        found = []
        if self._draw.random() < 0.7:
            found.append(weather.faults(self.seen.market, self._draw))
            self.seen.faults += 1
        if self._draw.random() < 0.8:
            found.append(weather.lie(self.seen.market, self._draw, self.seen.foreign))
            self.seen.lies += 1
        return found

    async def _live(self, turn: int, *, is_first: bool = False) -> None:
        """Let a daemon live for a while and kill it."""
        begun = time.monotonic()
        async with self.stage.box.starting() as daemon:
            if is_first:
                await daemon.until_told("READY=1")
                await self.stage.box.running()
            else:
                await self._while_alive(daemon, begun, turn)
            if turn and turn % PERSON_EVERY == 0:
                await self._look_at_consoles(daemon)
            if daemon.process.returncode is not None:
                self.seen.self_ended.append(f"{daemon.process.returncode} {' '.join(daemon.err[-2:])[:300]}")
            self.seen.killed_at.append((await self.truth())["now"])
            if daemon.process.returncode is None:
                daemon.process.kill()

    async def _while_alive(self, daemon: programs.Daemon, begun: float, turn: int) -> None:
        """Wait for the instant of the kill: at start, after a write to the market, or some minutes of a life later."""
        kind = turn % 3
        if kind == 0:
            await self._until(daemon, begun + self._draw.uniform(0.2, 4.0))
            return
        for _ in range(round(MOST_SECONDS / LOOK_SECONDS)):
            if daemon.process.returncode is not None or _is_ready(daemon):
                break
            await asyncio.sleep(LOOK_SECONDS)
        written = len(_writes(await self.truth()))
        if self._draw.random() < 0.5:
            await self._strike()
        limit = time.monotonic() + self._draw.uniform(*LIVES) / self.stage.speed
        await self._until(daemon, limit, written if kind == 1 else None)

    async def _until(self, daemon: programs.Daemon, limit: float, written: int | None = None) -> None:
        """Wait until the limit, or just beyond the daemon's next write."""
        while time.monotonic() < limit and daemon.process.returncode is None:
            if written is not None and len(_writes(await self.truth())) > written:
                await asyncio.sleep(self._draw.uniform(0.0, 0.1))
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def _strike(self) -> None:
        """End or displace one of ours, so that there is something to rent; two at once would be the market's fault."""
        truth = await self.truth()
        live = [row for row in self.seen.ours(truth) if row["ended"] is None and clouds.running(row)]
        taken = {row["machine_id"] for row in truth["contracts"] if str(row["id"]) == self.seen.foreign}
        row = self._draw.choice(live) if live else {}
        if len(live) < SLOTS or row["machine_id"] in taken:
            return
        if self.seen.market == "vast" and self._draw.random() < 0.5:
            rival = {"machine_id": row["machine_id"], "gpus": row["num_gpus"], "on_demand": True}
            await _ask("POST", f"{self.stage.market.control_url}/rivals", rival)
            return
        if self.seen.market == "mithril" and self._draw.random() < 0.5:
            booked = {"pool": self._draw.choice(POOLS), "quantity": 32, "seconds": self._draw.uniform(300.0, 1800.0)}
            await _ask("POST", f"{self.stage.market.control_url}/reservations", booked)
            return
        if self._draw.random() < 0.3:
            await self.stage.market.weather("host_gone", market=self.seen.market, machine_id=row["machine_id"])
            return
        if self.seen.market == clouds.MARKET:
            await _ask("POST", f"{self._url}{clouds.STOP}", {"runs_names": [row["name"]], "abort": True})
            return
        paths = {"vast": "/api/v0/instances", "runpod": "/v2/pods", "mithril": "/v2/spot/bids"}
        await _ask("DELETE", f"{self._url}{paths[self.seen.market]}/{row['id']}")

    async def _look_at_consoles(self, daemon: programs.Daemon) -> None:
        """Say of every machine that dstack gave up, or that ended unwatched, that it is gone, if it is."""
        if self.seen.market != clouds.MARKET or not _is_ready(daemon) or daemon.process.returncode is not None:
            return
        shown = (await self.stage.box.gpubid("fleet", "--json")).json
        for lease in clouds.given_up((await self.truth())["contracts"], shown):
            await self.stage.box.gpubid("release", lease, "--gone", "--yes")

    async def _by_hand(self) -> str:
        """Rent something in the same account by hand; return its id."""
        if self.seen.market == "runpod":
            body = {
                "name": "by hand",
                "image": "ubuntu:22.04",
                "gpu": {"id": "NVIDIA RTX A4000", "count": 1},
                "disk": 20,
            }
            return str((await _ask("POST", f"{self._url}/v2/pods", body))["id"])
        if self.seen.market == "mithril":
            launch: dict[str, list[str]] = {"volumes": [], "ssh_keys": []}
            bid = {**HAND, "project": self._project, "limit_price": "$50.00", "launch_specification": launch}
            return str((await _ask("POST", f"{self._url}/v2/spot/bids", bid))["fid"])
        if self.seen.market == clouds.MARKET:
            await _ask("POST", f"{self.stage.market.control_url}/fleets", clouds.FLEETS)
            return str((await _ask("POST", f"{self._url}{clouds.APPLY}", clouds.BY_HAND))["id"])
        question = {"rentable": {"eq": True}, "num_gpus": {"gte": 1}, "type": "on-demand", "limit": 64}
        offers = (await _ask("POST", f"{self._url}/api/v0/bundles/", question))["offers"]
        terms = {"client_id": "me", "image": "ubuntu:22.04", "disk": 16.0, "price": None, "label": "by hand"}
        made = await _ask("PUT", f"{self._url}/api/v0/asks/{self._draw.choice(offers)['id']}/", terms)
        return str(made["new_contract"])

    async def _calm(self) -> judge.Verdict:
        """Let a last daemon put everything in order, and judge."""
        async with self.stage.box.daemon() as daemon:
            for minute in range(CALM_MINUTES):
                await self.stage.passes(60)
                await self.truth()
                if minute % PERSON_EVERY == 0:
                    await self._look_at_consoles(daemon)
            truth, fleet = await self.truth(), await self.stage.box.fleet()
            await daemon.stop()
        ran = await self.stage.box.gpubid("ledger", "verify")
        is_clouds = self.seen.market == clouds.MARKET
        beyond = clouds.beyond(truth["contracts"], self._place / "ledger.sqlite") if is_clouds else 0.0
        return judge.judge(self.seen, truth, fleet, (ran.code, ran.out + ran.err), beyond)


def _is_ready(daemon: programs.Daemon) -> bool:
    return any("READY=1" in told.split("\n") for told in daemon.messages())


async def _ask(method: str, url: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Act as the owner in the vendor's console, or as a rival; in bad weather it may fail."""
    head = {"Authorization": f"Bearer {DEFAULT_KEY}"}
    try:
        async with aiohttp.ClientSession(headers=head) as link, link.request(method, url, json=body) as reply:
            return dict(await reply.json(content_type=None) or {})
    except (ValueError, aiohttp.ClientError):
        return {}


def _writes(truth: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    reads = ("/bundles", "/graphql")
    return [
        call
        for call in truth["calls"]
        if call["method"] in judge.WRITES
        and not call["path"].rstrip("/").endswith(reads)
        and not clouds.is_question(call["path"])
    ]


async def storm(market: str, place: Path, kills: int, seed: int, speed: float) -> judge.Verdict:
    """Let a storm blow over one market."""
    async with stories.stage(place, speed, "--seed", str(seed)) as stage:
        return await Storm(market, stage, seed).blow(kills)


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


async def main() -> int:
    """Run the storms and print their figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.storm")
    parser.add_argument("--kills", type=int, default=KILLS, help="a market")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--speed", type=float, default=stories.SPEED, help="simulated seconds a second")
    parser.add_argument("--markets", default="vast,runpod,mithril,dstack")
    parser.add_argument("--keep", type=Path, help="a folder for ledgers and configurations")
    asked = parser.parse_args()
    is_wrong = False
    with tempfile.TemporaryDirectory(prefix="gpubid-storm-") as scratch:
        for market in asked.markets.split(","):
            place = (asked.keep or Path(scratch)) / market
            place.mkdir(parents=True)
            began = time.monotonic()
            verdict = await storm(market, place, asked.kills, asked.seed, asked.speed)
            told = ", ".join(
                f"{name} {value:.4f}" if isinstance(value, float) else f"{name} {value}"
                for name, value in verdict.figures.items()
            )
            say(f"{market}, seed {asked.seed}, {time.monotonic() - began:.0f} s: {told}")
            for line in verdict.wrong:
                say(f"{market}: WRONG: {line}")
            is_wrong = is_wrong or bool(verdict.wrong)
    return 1 if is_wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
