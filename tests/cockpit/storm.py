"""A stormy market at the pace of our clock: outbids, lost hosts, faults and wrong prices, drawn by a seed."""

import asyncio
import random
import time
from collections.abc import Mapping
from typing import Any

import aiohttp

from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from tests.storm import weather
from tests.support.programs import Market

CONFIG = """\
[agent]
poll = "5s"
[markets.vast]
url = "{url}"
credential = "vast_api_key"
spend = true
[limits]
max_price_per_instance_hour = 2.00
max_fleet_per_hour = 8.00
max_per_day = 12.00
max_per_month = 250.00
max_instances = 8
[ledger]
path = "ledger.sqlite"
[web]
listen = "127.0.0.1:0"
[workloads.train]
image = "alpine:latest"
image_gb = 0.01
disk_gb = 10
gpu = ["RTX 4090", "RTX 3090"]
slots = 3
max_price = 1.0
strategy = "patient"
checkpoint = {{ at = "remote", interval = "1m", restore_seconds = 5 }}
[workloads.serve]
image = "alpine:latest"
image_gb = 0.01
disk_gb = 10
slots = 1
max_price = 1.0
strategy = "ondemand"
checkpoint = {{ at = "remote", interval = "1m", restore_seconds = 5 }}
"""
MARKET = ("--climate", "bidding_war", "--hosts", "200")
PAUSES = (5.0, 12.0)
FAULT_SECONDS = (4, 15)
BLOWS = ("outbid", "fault", "outbid", "displace", "fault", "by hand", "outbid", "rise", "fault", "host_gone")
"""One after another, so that every storm has some of each."""
LIES: tuple[Mapping[str, Any], ...] = (
    {"field": "price", "how": "times", "value": 1.2},
    {"field": "price", "how": "times", "value": 0.5},
    {"field": "price", "how": "missing"},
    {"field": "state", "how": "set", "value": "bogus"},
    {"field": "rows", "how": "twice"},
)


class Storm:
    """Blows over one market."""

    def __init__(self, market: Market, seed: int) -> None:
        self.blows = 0
        self.market = market
        self._draw = random.Random(seed)

    async def blow(self, seconds: float) -> None:
        """Blow for so long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            await asyncio.sleep(min(self._draw.uniform(*PAUSES), left))
            blow = BLOWS[self.blows % len(BLOWS)]
            self.blows += 1
            if blow == "fault":
                await self._fault()
            else:
                await self._strike(blow)

    async def _fault(self) -> None:
        span = self._draw.randint(*FAULT_SECONDS)
        fields = {**weather.faults("vast", self._draw), "seconds": span}
        if self._draw.random() < 0.4:
            fields = {"fault": "field_lie", "market": "vast", "seconds": span, **self._draw.choice(LIES)}
        await self.market.weather(**fields)

    async def _strike(self, blow: str) -> None:
        """Outbid or displace one of ours, raise its host's price, take the host away, or end it by hand."""
        contracts = (await self.market.truth())["contracts"]
        live = [row for row in contracts if row["ended"] is None and row["status"] == "running"]
        bidding = [row for row in live if row["is_bid"]]
        if not bidding:
            return
        row = self._draw.choice(bidding if blow in {"outbid", "displace"} else live)
        host = {"machine_id": row["machine_id"]}
        if blow == "host_gone":
            await self.market.weather("host_gone", market="vast", **host)
        elif blow == "by hand":
            await _ask("DELETE", f"{self.market.url}/api/v0/instances/{row['id']}/")
        elif blow == "rise":
            await _ask("POST", f"{self.market.control_url}/rises", {**host, "factor": 1.2})
        else:
            terms = {"bid": round(row["bid"] * 1.15 + 0.01, 3)} if blow == "outbid" else {"on_demand": True}
            await _ask("POST", f"{self.market.control_url}/rivals", {**host, "gpus": row["num_gpus"], **terms})


async def _ask(method: str, url: str, body: Mapping[str, Any] | None = None) -> None:
    """Act as a rival or as the owner; in bad weather it may fail."""
    head = {"Authorization": f"Bearer {DEFAULT_KEY}"}
    try:
        async with aiohttp.ClientSession(headers=head) as link, link.request(method, url, json=body) as reply:
            await reply.read()
    except aiohttp.ClientError:
        return
