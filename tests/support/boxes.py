"""Two boxes with one fleet: real daemons in folders of their own, and one ledger on a real PostgreSQL server."""

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.support import engines, postgres, programs
from tests.support.programs import LIVE, Daemon, Market, Ran

LED = """\
[ledger]
path = "ledger.sqlite"
url = "{url}"
credential = "ledger_password"
schema_name = "{schema}"
"""


class Pair:
    """A simulated market, and two folders whose daemons share a ledger on a server."""

    def __init__(self, place: Path, market: Market, url: str) -> None:
        self.market = market
        self.url = url
        self.schema = engines.schema(place)
        self.places = [place / name for name in "ab"]
        bare = url.replace(f":{postgres.PASSWORD}", "")
        ledger = LED.format(url=bare, schema=self.schema)
        text = LIVE.format(url=market.url).replace('[ledger]\npath = "ledger.sqlite"\n', ledger)
        assert ledger in text
        for each in self.places:
            each.mkdir()
            (each / "agent.toml").write_text(text)

    @contextlib.asynccontextmanager
    async def daemon(self, number: int, **changes: str) -> AsyncIterator[Daemon]:
        """Start the daemon of a box."""
        words = {"LEDGER_PASSWORD": postgres.PASSWORD, **changes}
        async with programs.daemon(self.places[number], **words) as started:
            yield started

    async def gpubid(self, number: int, *words: str) -> Ran:
        """Run a verb on a box."""
        return await programs.gpubid(self.places[number], *words, LEDGER_PASSWORD=postgres.PASSWORD)

    async def live(self) -> list[dict[str, Any]]:
        """Return the contracts that exist."""
        return [row for row in (await self.market.truth())["contracts"] if row["ended"] is None]

    async def rents(self) -> int:
        """Return how many creates arrived."""
        return sum("/asks/" in path for _, path in await self.market.writes())

    async def until_running(self, number: int) -> dict[str, Any]:
        """Return the running lease, as the daemon of a box shows it."""

        async def running() -> dict[str, Any] | None:
            ran = await self.gpubid(number, "fleet", "--json")
            leases = json.loads(ran.out)["leases"] if ran.code == 0 else []
            return next((each for each in leases if each["state"] == "running"), None)

        return dict(await programs.until(running, "a running lease"))


async def until_led(daemon: Daemon) -> None:
    """Wait until a daemon has had its first cycle as the leader."""
    await programs.until(lambda: any("page at" in line for line in daemon.out), "that it leads")


async def until_standing_by(daemon: Daemon) -> None:
    """Wait until a daemon stands by and sees who leads, or leads itself because that one has just ended."""

    def is_told() -> bool:
        assert daemon.process.returncode is None, daemon.err[-10:]
        said = [each["reason"] for each in daemon.logs("lead.seen")]
        return any("leads since" in each or each == "this daemon leads" for each in said)

    await programs.until(is_told, "that it stands by")


@contextlib.asynccontextmanager
async def pair(place: Path, url: str) -> AsyncIterator[Pair]:
    """Start a market, and write the files of two boxes."""
    async with programs.market(place) as market:
        yield Pair(place, market, url)
