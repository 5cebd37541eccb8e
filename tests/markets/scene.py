"""A market of ours before a bare server, and values to ask it with."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from agent.clock import SteppedClock
from agent.domain import money
from agent.domain.market import gpu
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.work.workload import Requirements
from agent.markets.port import OfferQuery, Terms
from agent.markets.vast import market
from tests.markets.wire import Answers, Says, Wire, serving

KEY = "made-up-key-4711"
LABEL = "gpubid:0123456789ab:train:0:0123456789abcdef"
OFFER = Offer(
    market="vast",
    offer_id="31000001",
    host_id="5101",
    owner_id="7001",
    gpu=gpu.model("RTX 4090"),
    gpus=1,
    vram_mb=24564,
    dlperf=99.0,
    reliability=0.99,
    is_verified=True,
    region="Oregon, US",
    inet_down_mbps=800.0,
    inet_up_mbps=600.0,
    disk_gb=500.0,
    ask=money.per_hour("0.40"),
    floor=money.per_hour_up("0.2"),
    storage_micros_per_gb_month=200_000,
    traffic_down_micros_per_gb=2604,
    traffic_up_micros_per_gb=3906,
    ends_at=None,
    seen_at=datetime(2026, 11, 5, tzinfo=UTC),
)
BID = Terms(Tenure.INTERRUPTIBLE, money.per_hour("0.25"), 16.0, "ubuntu:22.04")
ASK = Terms(Tenure.ON_DEMAND, None, 16.0, "ubuntu:22.04")


def asked(**changes: Any) -> OfferQuery:
    """A plain question; names of requirements and of the question may be mixed."""
    wants = {field.name for field in dataclasses.fields(Requirements)}
    requirements = Requirements(
        **{name: value for name, value in changes.items() if name in wants and name != "gpu_models"}
    )
    rest = {name: value for name, value in changes.items() if name not in wants or name == "gpu_models"}
    return OfferQuery(requirements, **({"disk_gb": 16.0} | rest))


@contextlib.asynccontextmanager
async def vast_at(url: str, clock: SteppedClock, **options: Any) -> AsyncIterator[market.VastMarket]:
    vast = market.connect(url, lambda: KEY, clock, lambda: 0.5, **options)
    try:
        yield vast
    finally:
        await vast.close()


@contextlib.asynccontextmanager
async def vast_saying(
    answers: Answers | Says, clock: SteppedClock, **options: Any
) -> AsyncIterator[tuple[market.VastMarket, Wire]]:
    async with serving(answers) as wire, vast_at(wire.url, clock, **options) as vast:
        yield vast, wire
