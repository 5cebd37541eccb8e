"""A simulated Vast market whose containers run real processes."""

import contextlib
import dataclasses
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agent.simulator.climate import Climate
from tests.support import counter
from tests.support.market import STILL, Market, running_market
from tests.support.programs import until

REAL = dataclasses.replace(STILL, processes=True)


@dataclasses.dataclass(frozen=True)
class Scene:
    """A market with real containers, the folder of its disks, and a word that marks the command lines."""

    market: Market
    folder: Path
    mark: str

    async def started(self, **fields: Any) -> int:
        """Rent an offer and wait until its container runs."""
        made = await self.rented(**fields)
        await self.market.running(made)
        return made

    async def rented(self, **fields: Any) -> int:
        """Rent the cheapest offer of a host without a contract of ours."""
        ours = {record["machine_id"] for record in await self.market.instances()}
        rows = [row for row in await self.market.offers() if row["min_bid"] and row["machine_id"] not in ours]
        offer = min(rows, key=lambda row: (row["min_bid"], row["id"]))
        return await self.market.rented(offer["id"], offer["min_bid"] * 1.1, **fields)

    async def counting(self) -> int:
        """Rent an instance that counts, and wait until it has counted."""
        made = await self.started(runtype="args", args=counter.command(self.mark))
        await until(lambda: counter.counted(self.disk(made)), "a count on the disk")
        return made

    async def outbid(self, contract: int) -> int:
        """Let a rival bid more. Return the rival's number."""
        machine = (await self.market.instance(contract))["machine_id"]
        answer = await self.market.control("POST", "/rivals", {"machine_id": machine, "bid": 30.0})
        assert answer.status == 200, answer.raw
        return int(answer.body["id"])

    async def resumed(self, contract: int, rival: int) -> None:
        """Remove the rival, and wait until the container runs again."""
        await self.market.control("DELETE", f"/rivals/{rival}")
        await self.market.running(contract)

    async def log(self, contract: int, tail: int = 1000) -> list[str]:
        """Return the log, requested as by the vendor's clients."""
        asked = await self.market.call("PUT", f"/instances/request_logs/{contract}/", {"tail": str(tail)})
        place = asked.body["result_url"].removeprefix(self.market.simulator.vast_url)
        return (await self.market.call("GET", place, key=None)).raw.decode().strip("\n").splitlines()

    async def printed(self, contract: int, line: str) -> list[str]:
        """Wait until the log has a line. Return the log."""

        async def log() -> list[str]:
            lines = await self.log(contract)
            return lines if line in lines else []

        return list(await until(log, f"{line!r} in the log"))

    def disk(self, contract: int) -> Path:
        return self.folder / f"vast-{contract}"


@contextlib.asynccontextmanager
async def real_market(
    folder: Path, *, isolates: bool = True, most_running: int = 4, climate: Climate = REAL
) -> AsyncIterator[Scene]:
    registry = counter.Registry(folder, isolates=isolates, most_running=most_running)
    async with running_market(climate, registry=registry) as market:
        yield Scene(market, folder, uuid.uuid4().hex)
