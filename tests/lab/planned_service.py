"""A service as the daemon sees it: each step of the bench as a fleet, and what the whole plan() weighs in it."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent.decide import plan
from agent.decide.accounting import meter
from agent.decide.facts import LeaseChanged
from agent.decide.limits import limits
from agent.decide.paper.paper_ledger import PaperLedger
from agent.decide.service import capacity_choice, warm_record
from agent.domain.fleet import Fleet
from agent.domain.market.interruption import Cause
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import FREE
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.warm_time import WarmTime
from agent.domain.work.ready_sign import Readiness, ReadySign
from agent.domain.work.workload import WorkloadKind
from agent.lab.availability import availability_ticks, own_rule
from strategies.hedged import Hedged
from strategies.hedged_rules.params import HedgedParams
from tests.support import builders

STEP, COLD, ASK, GAIN = timedelta(minutes=2), 1, 0.6, 0.05
POOLS, PRICES = ("vast-a", "vast-b", "runpod-a", "runpod-b"), (0.20, 0.22, 0.24, 0.26)
"""The region of a pool is its market; a market's hosts have room for one, and one slot is wanted at a time."""
READY = Readiness(ReadySign.PORT, port=80)
SERVICE = builders.workload(strategy="hedged", slots=2, kind=WorkloadKind.SERVICE, image_gb=1.0, ready=READY)
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

    def __init__(self, **worth: Any) -> None:
        """Begin with nothing held; `worth` is the `short_worth` or the `target` of the strategy."""
        wait = (COLD + 1) * STEP
        numbers = HedgedParams(
            keep_warm=True, cold_start=wait, headroom=0.0, return_gain=GAIN, share_of_market=1.0, **worth
        )
        self._tuned = builders.tuned(Hedged(), numbers, "hedged")
        self.book, self.now, self.losses = PaperLedger(), builders.NOW, 0
        self.warm: dict[str, WarmTime] = {}
        self._leases: dict[str, Lease] = {}
        self._refused: dict[str, float] = {}
        self._hours = 0.0

    def follow(self, seen: availability_ticks.Seen) -> None:
        """Follow the outcome of a step."""
        before, self.now = self.now, builders.NOW + seen.step * STEP
        self._hours = seen.step * (STEP.total_seconds() / 3600)
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
                self._refused[pool] = self._hours

        self._show_warm(seen)

    def _show_warm(self, seen: availability_ticks.Seen) -> None:
        """Show which leases are ready, and record whether enough are. Nothing is judged before one can be."""
        shown = [*zip(POOLS, seen.warm, strict=True), ("spare", seen.on_demand_warm)]
        for pool, warm in shown:
            if pool in self._leases:
                ready = self.now if warm else None
                self._leases[pool] = msgspec.structs.replace(self._leases[pool], ready_since=ready)
        if seen.step <= COLD:
            self.warm = {"train": WarmTime("train", self.now)}
            return
        self.warm = warm_record.watched(self.warm, self._fleet(), lambda _: 1)

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
        # Only as many have a slot as the workload has: those that are ready come first.
        held = sorted(self._leases.values(), key=lambda each: (each.ready_since is None, each.opened_at))
        leases = tuple(
            msgspec.structs.replace(each, slot=builders.slot("train", index)) for index, each in enumerate(held)
        )
        known = {"hosts": self.book.hosts, "warm": self.warm}
        return builders.fleet(now=self.now, poll=STEP, workloads=(SERVICE,), markets=markets, leases=leases, **known)

    def _tried(self) -> list[str]:
        others = [pool for pool in POOLS if pool not in self._leases]
        # In the hours of the bench, to the last bit: an hour after a refusal rounding decides.
        since = {pool: self._refused.get(pool, -own_rule.AGAIN_HOURS) for pool in others}
        fresh = [pool for pool in others if since[pool] <= self._hours - own_rule.AGAIN_HOURS]
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


class Both:
    """A rule of the bench whose every choice is asked of the whole plan too. `met` has the choices that came up."""

    def __init__(self, rule: own_rule.Hedged, planned: Planned, asked: Asked) -> None:
        self._rule, self._planned, self._asked = rule, planned, asked
        self.met: set[tuple[int, int]] = set()
        self.compared = 0

    def choose(self, seen: availability_ticks.Seen) -> availability_ticks.Choice:
        """Return the choice of the bench's rule, and hold that the plan weighed the same and chose the same."""
        made, by_bench = self._rule.choose(seen), self._asked.last()
        self._planned.follow(seen)
        # A slot more than the workload has is under way while one replaces another.
        if by_bench is not None and sum(seen.held) + seen.on_demand <= SERVICE.slots:
            self._planned.plan()
            by_plan = self._asked.last()
            assert by_plan is not None
            assert by_plan[0] == [pytest.approx(place, rel=2e-3) for place in by_bench[0]]
            assert by_plan[1:] == by_bench[1:]
            self.met.add((sum(by_plan[3].values()), by_plan[4]))
            self.compared += 1
        return made
