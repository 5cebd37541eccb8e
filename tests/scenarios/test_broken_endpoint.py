"""One endpoint of a market is broken for long: what does not list instances hides none, and nothing is let go."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from agent.domain import money
from agent.domain.market import gpu
from agent.domain.record.lease import LeaseState
from agent.domain.work.workload import Requirements
from agent.markets.dstack.vendor_record import DstackOptions
from agent.markets.mithril.vendor_record import MithrilOptions
from agent.simulator import faults
from tests.support import builders
from tests.support.both import both

ENDPOINTS = [
    ("vast", "GET /users/current"),
    ("vast", "POST /bundles"),
    ("vast", "GET /instances/pending-price-increases"),
    ("runpod", "POST /graphql"),
    ("runpod", "GET /v2/catalog/gpus"),
    ("mithril", "GET /v2/me"),
    ("mithril", "GET /v2/instances/pricing/history"),
    ("dstack", "POST /api/project/main/fleets/get"),
    ("dstack", "POST /api/project/main/runs/get_plan"),
]
LONG = 2400
OPTIONS: dict[str, Any] = {
    "mithril": MithrilOptions(project="proj_mine", disk_per_gb_month=Decimal("0.1")),
    "dstack": DstackOptions(fleet="mine", backends=("aws", "cloudrift")),
}
CARDS = {"mithril": "A100 SXM4"}


@pytest.mark.nightly
@pytest.mark.parametrize(("market", "route"), ENDPOINTS, ids=lambda part: str(part).replace("/", "_"))
async def test_every_listing_is_believed_and_the_lease_runs_on(tmp_path: Path, market: str, route: str) -> None:
    wants = Requirements(gpu_models=(gpu.model(CARDS.get(market, "RTX 4090")),))
    work = builders.workload(
        strategy="patient" if market in {"vast", "mithril"} else "ondemand",
        requirements=wants,
        markets=(market,),
        max_price=money.per_hour(3),
    )
    options = {market: OPTIONS[market]} if market in OPTIONS else {}
    poll = timedelta(seconds=30)
    async with both(tmp_path, work, markets=(market,), options=options, poll=poll, is_wired=False) as world:
        await world.until(lambda: len(world.running()) == 1)
        (lease,) = world.running()
        side = world.simulator.sides[market]
        told = {"fault": "server_error_before", "market": market, "route": route, "seconds": LONG}
        assert side.weather is not None
        side.weather.add(faults.parse(told))
        until = world.clock.time() + LONG
        while world.clock.time() < until:
            done = await world.cycle()
            assert done.fleet.markets[market].is_fresh
        assert any(status == 503 for *_, status in side.api.calls), "nobody asked: this proves nothing"  # type: ignore[attr-defined]
        assert [(each.lease_id, each.state) for each in world.leases()] == [(lease.lease_id, LeaseState.RUNNING)]
