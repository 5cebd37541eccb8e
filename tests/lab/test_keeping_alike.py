"""One recorded situation under the whole plan() and under the bench's rule: both judge every place and choose alike."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import numpy as np
import pytest

from agent.decide import plan
from agent.decide.accounting import meter
from agent.decide.facts import LeaseChanged
from agent.decide.limits import limits
from agent.decide.paper.paper_ledger import PaperLedger
from agent.decide.service import capacity_choice
from agent.domain.fleet import Fleet
from agent.domain.market.interruption import Cause
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import FREE
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.workload import WorkloadKind
from agent.lab.availability import availability_ticks, own_rule, span
from strategies.hedged import Hedged
from strategies.hedged_rules.params import HedgedParams
from tests.support import builders

STEP, COLD, ASK, GAIN = timedelta(minutes=2), 1, 0.6, 0.05
POOLS, PRICES = ("vast-a", "vast-b", "runpod-a", "runpod-b"), (0.20, 0.22, 0.24, 0.26)
"""The region of a pool is its market; a market's hosts have room for one, and one slot is wanted at a time."""
SERVICE = builders.workload(strategy="hedged", slots=2, kind=WorkloadKind.SERVICE, image_gb=1.0)
Judged = tuple[float, float, float, float]
"""The price of a place, its losses an hour now and ahead, and the slots there."""
Answer = tuple[list[Judged], list[str], capacity_choice.Terms, dict[float, int], int]


class Asked:
    """What `warm` was asked and answered: its places by their prices, the terms, and the choice by price."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: list[Answer] = []
        choose = capacity_choice.choose

        def asked(places: Sequence[capacity_choice.Place], terms: capacity_choice.Terms) -> capacity_choice.Choice:
            made = choose(places, terms)
            by_price = sorted(places, key=lambda each: each.price)
            found = [(each.price, each.hazard, each.outlook, float(each.held)) for each in by_price]
            spots = {each.price: count for each, count in zip(places, made.spots, strict=True) if count}
            self.answers.append((found, [each.kin for each in by_price], terms, spots, made.on_demand))
            return made

        monkeypatch.setattr(capacity_choice, "choose", asked)

    def last(self) -> Answer | None:
        """Return the last answer and forget it."""
        found = self.answers[-1] if self.answers else None
        self.answers.clear()
        return found


class Planned:
    """Keeps leases and a ledger as the daemon does, from the sight of a rule, and asks the whole plan."""

    def __init__(self, worth: float) -> None:
        wait = (COLD + 1) * STEP
        numbers = HedgedParams(
            keep_warm=True, short_worth=worth, cold_start=wait, headroom=0.0, return_gain=GAIN, share_of_market=1.0
        )
        self._tuned = builders.tuned(Hedged(), numbers, "hedged")
        self.book, self.now, self.losses = PaperLedger(), builders.NOW, 0
        self._leases: dict[str, Lease] = {}
        self._refused: dict[str, Any] = {}

    def follow(self, seen: availability_ticks.Seen) -> None:
        """Follow the outcome of a step."""
        before, self.now = self.now, builders.NOW + seen.step * STEP
        shown = [*zip(POOLS, seen.wanted, seen.held, strict=True), ("spare", seen.on_demand, seen.on_demand)]
        for pool, wanted, held in shown:
            lease = self._leases.get(pool)
            if lease is not None and not held:
                self._ended(pool, lease, before, is_lost=bool(wanted))
            elif lease is not None:
                self._leases[pool] = self._metered(lease, self.now)
            elif held:
                self._leases[pool] = self._metered(self._begun(pool, before), self.now)
            if held < wanted:
                self._refused[pool] = self.now

    def plan(self) -> None:
        """Ask the whole plan."""
        plan.plan(self._fleet(), {"hedged": self._tuned}, limits.Limits())

    def _begun(self, pool: str, at: Any) -> Lease:
        tenure = Tenure.INTERRUPTIBLE if pool in POOLS else Tenure.ON_DEMAND
        rate = PRICES[POOLS.index(pool)] if pool in POOLS else ASK
        times = {"opened_at": at, "state_since": at, "run_since": at, "accrued_until": at}
        return builders.lease(
            lease_id=f"{pool}{at}",
            market=pool.partition("-")[0] if pool in POOLS else "vast",
            host_id=pool,
            owner_id=f"of {pool}",
            tenure=tenure,
            gpu_rate=builders.per_hour(rate),
            disk_rate=FREE,
            **times,
        )

    def _metered(self, lease: Lease, until: Any) -> Lease:
        self.book.meter(lease, meter.accrue(lease, until), until)
        return msgspec.structs.replace(lease, accrued_until=until)

    def _ended(self, pool: str, lease: Lease, at: Any, *, is_lost: bool) -> None:
        gone = self._metered(self._leases.pop(pool), at)
        if is_lost:
            after = msgspec.structs.replace(gone, state=LeaseState.PAUSED, run_since=None, state_since=self.now)
            self.book.learn(LeaseChanged(lease, after, EventKind.LEASE_INTERRUPTED, (), Cause.OUTBID), self.now, {})
            self.losses += 1

    def _fleet(self) -> Fleet:
        markets = {
            name: builders.view(market=name, offers=tuple(self._offers(name)), listed_at=self.now)
            for name in ("runpod", "vast")
        }
        held = sorted(self._leases.values(), key=lambda each: each.opened_at)
        leases = tuple(
            msgspec.structs.replace(each, slot=builders.slot("train", index)) for index, each in enumerate(held)
        )
        return builders.fleet(now=self.now, workloads=(SERVICE,), markets=markets, leases=leases, hosts=self.book.hosts)

    def _tried(self) -> list[str]:
        others = [pool for pool in POOLS if pool not in self._leases]
        since = {pool: self._refused.get(pool, builders.ago(days=9)) for pool in others}
        fresh = [pool for pool in others if self.now - since[pool] >= timedelta(hours=own_rule.AGAIN_HOURS)]
        return fresh or sorted(others, key=since.__getitem__)[:1]

    def _offers(self, market: str) -> list[Offer]:
        """Return the offers that the bench would try too, and on-demand that nobody bids for."""
        same: dict[str, Any] = {"market": market, "ask": builders.per_hour(ASK), "seen_at": self.now}
        same["storage_micros_per_gb_month"] = 0
        found = [builders.offer(number, floor=None, **same) for number in (8, 9)]
        for number, pool in enumerate(POOLS):
            if pool.startswith(market) and pool in self._tried():
                floor = builders.per_hour(PRICES[number])
                found.append(builders.offer(number, host_id=pool, floor=floor, **same))
        return found


def recorded() -> span.Span:
    """Return a day and a half in which places come and go, one of them often."""
    lots = np.random.default_rng(7)
    rows = []
    for often in (0.4, 1.0, 3.0, 6.0):
        hours = lots.exponential(often, 400)
        up = [place % 3 < 2 for place, length in enumerate(hours) for _ in range(max(int(length * 30), 1))]
        rows.append(up[: 36 * 30])
    return span.Span(
        group="g",
        first=0,
        pools=POOLS,
        capacity=np.array(rows, dtype=np.int64),
        prices=np.repeat(np.array(PRICES)[:, None], len(rows[0]), axis=1),
        on_demand_price=ASK,
        step_seconds=STEP.total_seconds(),
        cold_steps=COLD,
        begins_hours=0.0,
    )


@pytest.mark.parametrize(("worth", "choices"), [(12.0, {(1, 0), (2, 0)}), (40.0, {(2, 0), (0, 1)})])
def test_the_plan_and_the_bench_judge_every_place_and_choose_alike(
    worth: float, choices: set[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, planned = Asked(monkeypatch), Planned(worth)
    day = recorded()
    rule = own_rule.Hedged(day, span.Setting(slots=1), worth=worth, least_gain=GAIN)
    met: set[tuple[int, int]] = set()

    class Both:
        def choose(self, seen: availability_ticks.Seen) -> availability_ticks.Choice:
            made, by_bench = rule.choose(seen), asked.last()
            planned.follow(seen)
            # A slot more than the workload has is under way while one replaces another.
            if by_bench is not None and sum(seen.held) + seen.on_demand <= SERVICE.slots:
                planned.plan()
                by_plan = asked.last()
                assert by_plan is not None
                assert by_plan[0] == [pytest.approx(place, rel=2e-3) for place in by_bench[0]]
                assert by_plan[1:] == by_bench[1:]
                met.add((sum(by_plan[3].values()), by_plan[4]))
            return made

    availability_ticks.run(lambda *_: Both(), day, span.Setting(slots=1))
    assert planned.losses >= 5
    assert met >= choices, "the record must ask for every choice"
