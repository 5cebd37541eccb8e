"""The whole program at Mithril: it pays the price and not its limit, waits for auctions, and no answer rents twice."""

import contextlib
import dataclasses
import io
import math
from collections.abc import AsyncIterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from agent.act.kept_logs import kept_log
from agent.cli.rehearsing import rehearsal_report
from agent.cli.rehearsing.rehearsal import Scene, rehearse
from agent.cli.shared import session
from agent.domain import money
from agent.domain.market import gpu
from agent.domain.market.interruption import Cause
from agent.domain.work.order import Order
from agent.domain.work.workload import Requirements
from agent.ledger.file import sidecar
from agent.markets.mithril.vendor_record import MithrilOptions
from agent.simulator import faults
from agent.simulator.mithril.model import Bid, Status
from agent.simulator.mithril.pool_auction import Bidder
from agent.web.reading import log_answers
from agent.web.reading.log_answers import LogQuestion
from tests.support import builders, engines
from tests.support.both import Both, both
from tests.support.scene import HOURS_POLL, POLL

# A simulated market does not know the project of a live configuration.
OPTIONS = {"mithril": MithrilOptions(project="proj_mine", disk_per_gb_month=Decimal("0.1"))}


def work(**changes: Any) -> Any:
    wants = changes.pop("requirements", Requirements(gpu_models=(gpu.model("A100 SXM4"),)))
    return builders.workload(requirements=wants, **{"markets": ("mithril",), "max_price": money.per_hour(3), **changes})


@contextlib.asynccontextmanager
async def running(directory: Path, poll: timedelta = HOURS_POLL, **changes: Any) -> AsyncIterator[Both]:
    place = {"markets": ("mithril",), "options": OPTIONS, "log_bytes": 10**6}
    async with both(directory, work(**changes), **place, poll=poll, is_wired=True) as world:  # type: ignore[arg-type]
        yield world


def bids(world: Both) -> list[Bid]:
    """Return the bids that exist, as they really are."""
    world.simulator.mithril.advance_to(world.clock.time())
    return world.simulator.mithril.world.live_contracts()


def outbid(world: Both, dollars: float) -> None:
    """Let another renter bid for the whole pool of our bid."""
    (bid,) = bids(world)
    pool = world.simulator.mithril.world.pools[bid.pool.kind.fid, bid.pool.region]
    pool.add(Bidder(5_000_000, round(dollars * 100), pool.capacity, world.clock.time()))


async def capped(world: Both, cents: int) -> None:
    """Start the program again with a cap of the rate."""
    limits = dataclasses.replace(world.config.limits, per_hour=money.per_hour(Decimal(cents) / 100))
    world.config = dataclasses.replace(world.config, limits=limits)
    await world.restart()


def charged(world: Both) -> float:
    world.simulator.mithril.advance_to(world.clock.time())
    return world.simulator.mithril.world.charged_total()


def _forget(ledger: Path) -> None:
    engines.lose(ledger)
    sidecar.sibling(ledger, ".fleet").unlink()


async def test_a_day_is_paid_at_the_price_and_never_at_the_limit(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        (lease,), (bid,) = world.leases(), bids(world)
        price = bid.vms[-1].prices[-1].cents
        assert lease.gpu_rate == money.per_hour(Decimal(price) / 100) < lease.bid
        assert lease.bid == money.per_hour(Decimal(bid.limit_cents) / 100)
        await world.restart(after_seconds=60.0)
        await world.cycle(minutes=240)
        assert [one.instance_id for one in world.running()] == [bid.fid]
        assert await world.spend() == pytest.approx(charged(world), rel=0.01)
        assert await world.events("alert.not_sold", "alert.price") == []


async def test_a_lost_answer_is_found_by_its_name_and_rents_once(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        world.simulator.mithril.weather.add(
            faults.parse({"fault": "reset", "market": "mithril", "route": "POST /v2/spot/bids", "when": "after"})
        )
        await world.cycle()
        world.simulator.mithril.weather.clear_all()
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        await world.cycle(minutes=30)
        assert [lease.instance_id for lease in world.leases()] == [bid.fid for bid in bids(world)]
        assert len(world.simulator.mithril.world.bids) == 1
        (lease,) = world.leases()
        assert lease.slot.workload == "train", "the ledger names the workload of the short label"


async def test_a_bid_that_the_ledger_does_not_know_is_held_and_counted(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        await world.app.close()
        _forget(world.config.ledger)
        await world.open()
        await world.until(lambda: any(lease.is_held for lease in world.leases()), minutes=15)
        (held,) = [lease for lease in world.leases() if lease.is_held]
        assert (held.slot.workload, held.slot.index, held.instance_id) == ("", 0, bids(world)[0].fid)
        before = await world.spend()
        await world.cycle(minutes=60)
        assert await world.spend() > before


async def test_over_a_cap_of_the_rate_a_machine_that_costs_less_runs_on_under_a_lower_limit(tmp_path: Path) -> None:
    async with running(tmp_path, POLL) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        (lease,), (bid,) = world.running(), bids(world)
        counted, paid = bid.limit_cents, round(lease.gpu_rate.dollars * 100)
        least = paid + math.ceil(lease.disk_rate.dollars * 100) + 1
        assert least < counted
        await capped(world, least)
        await world.cycle(minutes=30)
        assert (bid.status, paid < bid.limit_cents <= least) == (Status.ALLOCATED, True)
        assert [event.lease_id for event in await world.events("lease.rebid")] == [lease.lease_id]
        await capped(world, paid)
        await world.cycle(minutes=2)
        assert bid.status is Status.PAUSED, "a limit under the price would lose it with less order"


async def test_over_a_cap_of_the_rate_a_machine_whose_limit_the_market_keeps_is_paused(tmp_path: Path) -> None:
    async with running(tmp_path, POLL) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        (lease,), (bid,) = world.running(), bids(world)
        limit = bid.limit_cents
        await capped(world, round(lease.gpu_rate.dollars * 100) + 10)
        refusal = {"fault": "invalid_request", "market": "mithril", "route": "PATCH /v2/spot/bids"}
        world.simulator.mithril.weather.add(faults.parse(refusal))
        await world.cycle()
        assert bid.status is Status.ALLOCATED
        world.simulator.mithril.weather.clear_all()
        await world.cycle()
        assert (bid.status, bid.limit_cents) == (Status.PAUSED, limit)
        await world.until(lambda: bid.holds_gpu, minutes=30)
        assert bid.limit_cents < limit, "a stopped bid is changed to a limit at which it may start"


@pytest.mark.nightly
async def test_a_machine_is_replaced_within_the_notice_of_its_end(tmp_path: Path) -> None:
    """The old machine is kept until that end: the new one runs, and still loads its image."""
    async with running(tmp_path, POLL) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        (first,) = bids(world)
        outbid(world, 50.0)
        await world.until(lambda: first.status is not Status.ALLOCATED, minutes=10)
        await world.until(lambda: len(world.running()) == 1 and not first.holds_gpu, minutes=60)
        await world.cycle(minutes=60)
        (lost,) = await world.events("lease.interrupted")
        (_, ran) = await world.events("lease.running")
        assert lost.lease_id.endswith(first.fid), "the new machine was never lost"
        assert ran.lease_id != lost.lease_id
        assert ran.at < lost.at, "its work had a machine elsewhere before the end"
        assert sum(bid.holds_gpu for bid in bids(world)) == 1
        assert await world.spend() == pytest.approx(charged(world), rel=0.05, abs=0.02)
        assert kept_log.headers(kept_log.folder_of(world.config.ledger)) == [], "no log is asked where there is none"
        known, reader = world.app.ledger.recollection(world.clock.now()), await world.app.ledger.reader()
        place = (world.app.ledger.fleet_id, world.config.ledger, world.app.credential, world.clock.now())
        grounds = log_answers.Grounds(known, reader, world.app.rules.workloads, *place)
        told = await log_answers.answer(LogQuestion("train/0", 100), grounds, world.app.markets)
        assert told["sentence"].startswith("mithril keeps no log of an instance; write [workloads.train.guard]")


async def test_a_kill_leaves_no_bid_that_could_still_win(tmp_path: Path) -> None:
    full = Requirements(gpu_models=(gpu.model("B200"),))
    waits = work(requirements=full, max_price=money.per_hour("0.02"))
    async with both(tmp_path, waits, markets=("mithril",), options=OPTIONS, is_wired=True) as world:
        await world.cycle(minutes=10)
        assert [bid.status for bid in bids(world)] == [Status.OPEN]
        assert await world.spend() < 0.001, "a bid that waits costs nothing"
        assert await world.events("alert.price", "alert.rate_doubted") == []
        await world.app.say(Order("kill", "fleet:all"), "a person")
        await world.cycle(minutes=5)
        assert bids(world) == []


CONFIG = """\
[markets.mithril]
simulated = "calm"
disk_per_gb_month = 0.1
[limits]
max_price_per_instance_hour = 3.0
max_fleet_per_hour = 10.0
max_per_day = 100.0
max_per_month = 1000.0
max_instances = 4
[workloads.train]
image = "pytorch/pytorch:latest"
gpu = ["A100 SXM4"]
slots = 2
max_price = 0.60
strategy = "patient"
"""


async def test_a_rehearsal_without_an_ask_compares_with_none(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(CONFIG, encoding="utf-8")
    settings, tuned = session.read(tmp_path / "agent.toml")
    told = await rehearse(settings, tuned, Scene("calm", 0.5, 7), tmp_path)
    assert (told.figures["ondemand_cost"], told.figures["savings_ratio"]) == (None, None)
    console = Console(width=200, file=io.StringIO())
    rehearsal_report.print_report(told, console)
    assert "Nothing that matches was sold on demand" in console.file.getvalue()  # type: ignore[attr-defined]


async def test_a_bid_that_a_person_pauses_at_the_market_runs_again_after_its_cool_off(tmp_path: Path) -> None:
    """It was waited for without end, as if an auction could pick it."""
    async with running(tmp_path, value_per_hour=money.per_hour(3)) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=60)
        (bid,) = bids(world)
        world.simulator.mithril.world.desk.pause(bid)
        await world.cycle(minutes=90)
        assert bids(world)[0].status is Status.ALLOCATED
        (lost,) = await world.events("lease.interrupted")
        assert lost.cause is Cause.EXTERNAL_STOP
