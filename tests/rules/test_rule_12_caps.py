"""Rule 12: nothing pays over a cap, the overshoot is bounded, and a hard cap pauses what matters least first.

Overshoot is at most (rate of what was billing) x (one poll + time the market refused releases + release latency) +
traffic metered between two polls.
"""

import dataclasses
import datetime as dt

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.decide import plan
from agent.decide.limits import cap_endings
from agent.decide.limits.limits import Limits, committed_by_fleet
from agent.domain import money
from agent.domain.fleet import Fleet
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from agent.domain.work.decision import Rebid, Rent
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload
from tests.support import builders, second_price, traffic
from tests.support.losses import seeds
from tests.support.world import PROPERTY_POLL, Rehearsed, play, work

POLL_SECONDS = PROPERTY_POLL.total_seconds()
LATENCY_SECONDS = 10.0
"""From the decision to the market's answer, the confirming second look included."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ranked(Workload):
    """A workload with a priority."""

    priority: int = 0


def ranked(name: str, priority: int, slots: int = 1) -> Workload:
    """Return a workload that matters so much."""
    made = work(name, slots=slots)
    return Ranked(
        **{each.name: getattr(made, each.name) for each in dataclasses.fields(Workload)} | {"priority": priority}
    )


@pytest.mark.long(25)
@given(
    seed=seeds,
    cap=st.sampled_from([0.1, 0.2, 0.4]),
    slots=st.integers(1, 3),
    refused=st.sampled_from([0, 0, 300]),
    fault=st.sampled_from(["throttle_json", "server_error_before"]),
    start=st.sampled_from([0, 23]),
)
def test_the_overshoot_of_a_day_is_bounded(
    seed: int, cap: float, slots: int, refused: float, fault: str, start: float
) -> None:
    async def story(world: Rehearsed) -> None:
        rate = 0.0
        fell = False
        end = world.scene.start + dt.timedelta(hours=6.5)
        while world.clock.now() < end:
            done = await world.cycle()
            rate = max(rate, sum(lease.gpu_rate.dollars + lease.disk_rate.dollars for lease in world.leases()))
            ended = [intent for intent in done.done if intent.kind in {IntentKind.PAUSE, IntentKind.RELEASE}]
            if ended and refused and not fell:
                fell = True
                world.weather(fault, route="PUT /instances", seconds=refused)
                world.weather(fault, route="DELETE /instances", seconds=refused)
            if ended:
                end = min(end, world.clock.now() + dt.timedelta(minutes=40))
            over = done.plan.standing.today.dollars >= cap
            assert not (over and any(intent.kind.is_paying for intent in done.done)), "paid over the cap"
        days: dict[float, float] = {}
        first = (world.scene.start - dt.timedelta(days=1)).timestamp()
        charges = world.market.charges(first, world.clock.time())
        for charge in charges:
            days[charge.day] = days.get(charge.day, 0.0) + charge.amount
        seconds = POLL_SECONDS + LATENCY_SECONDS + (refused + POLL_SECONDS if refused else 0.0)
        # A pause does not end the disk; the release that follows it comes a poll later, or after the refusals.
        allowed = rate * 2 * seconds / 3600 + traffic.most_dollars(charges, seconds, slots) + 0.002
        for total in days.values():
            assert total - cap <= allowed, f"{total:.4f} over a cap of {cap}, allowed {allowed:.4f}"

    limits = Limits(per_day=money.usd(str(cap)))
    begin = dt.datetime(2026, 7, 27, tzinfo=dt.UTC) + dt.timedelta(hours=start)
    play(story, seed=seed, limits=limits, workloads=(work(slots=slots),), start=begin)


@given(seed=seeds, first=st.integers(0, 9), second=st.integers(10, 19))
def test_a_rate_over_its_cap_pauses_what_matters_least(seed: int, first: int, second: int) -> None:
    """The cap was lowered while the program was down: a start does not wait for a person to make room."""

    async def story(world: Rehearsed) -> None:
        await world.until_running()
        rates = {lease.slot.workload: lease.gpu_rate + lease.disk_rate for lease in world.leases()}
        cap = rates["high"] + next(lease.disk_rate for lease in world.leases() if lease.slot.workload == "low")
        world.config = dataclasses.replace(world.config, limits=Limits(per_hour=cap))
        await world.restart()
        await world.cycle(minutes=20)
        states = {lease.slot.workload: lease.state for lease in world.leases()}
        assert states == {"high": LeaseState.RUNNING, "low": LeaseState.PAUSED}
        assert not [order for order in world.orders if order.kind is IntentKind.RESUME]

    play(story, seed=seed, workloads=(ranked("high", second), ranked("low", first)))


@given(seed=seeds, place=st.sampled_from([CheckpointPlace.REMOTE, CheckpointPlace.DISK]))
def test_a_spent_budget_pauses_first_and_releases_by_priority_after(seed: int, place: CheckpointPlace) -> None:
    workloads = tuple(
        dataclasses.replace(each, checkpoint=Checkpoint(place=place)) for each in (ranked("high", 9), ranked("low", 1))
    )

    async def story(world: Rehearsed) -> None:
        await world.until_running()
        spent = world.app.ledger.recollection(world.clock.now()).total.today
        world.config = dataclasses.replace(world.config, limits=Limits(per_day=spent))
        await world.restart()
        orders = len(world.orders)
        owners = {int(lease.instance_id): lease.slot.workload for lease in world.leases()}
        await world.cycle(minutes=10)
        given = [(order.kind, owners[order.number]) for order in world.orders[orders:]]
        pauses = [(IntentKind.PAUSE, "low"), (IntentKind.PAUSE, "high")]
        releases = [(IntentKind.RELEASE, "low"), (IntentKind.RELEASE, "high")]
        assert given == (pauses if place is CheckpointPlace.DISK else pauses + releases)
        assert all(not contract.holds_gpu for contract in world.live())

    play(story, seed=seed, workloads=workloads)


@settings(max_examples=40)
@given(fleet=second_price.fleets(), cap=second_price.dollars)
def test_a_bid_counts_at_its_limit_before_and_after_it_is_sent(fleet: Fleet, cap: money.UsdPerHour) -> None:
    """The worst case of every bid stays under the cap, and no plan bids above the value or the highest price."""
    caps, (worth,) = Limits(per_hour=cap), fleet.workloads
    before = committed_by_fleet(fleet)
    bids = [lease.bid_limit for lease in fleet.leases if lease.bid_limit is not None and not lease.paused_by_us]
    disks = [lease.disk_rate for lease in fleet.leases]
    assert before.rate == money.total_rate([*bids, *disks])
    made = plan.plan(fleet, second_price.TUNED, caps)
    most = max(before.rate, cap)
    assert made.standing.rate <= most, "a bid was not counted at its limit"
    for each in made.decisions:
        if isinstance(each, Rent | Rebid):
            assert each.bid is not None
            model = each.offer.gpu if isinstance(each, Rent) else each.lease.gpu
            assert each.bid <= min(worth.value_of(model), worth.price_of(model))
        if isinstance(each, Rent):
            sent = builders.intent(price=each.bid, rate=each.rate, slot=each.slot, market=each.offer.market)
            doubted = msgspec.structs.replace(fleet, intents=(sent,))
            assert committed_by_fleet(doubted).rate == before.rate + each.rate


@given(fleet=second_price.fleets(), cap=second_price.dollars)
def test_a_cap_ends_what_waits_for_an_auction_before_anything_that_runs(fleet: Fleet, cap: money.UsdPerHour) -> None:
    ordered = [order.lease for order in cap_endings.endings(fleet, committed_by_fleet(fleet), Limits(per_hour=cap))]
    assert [lease.is_open_bid for lease in ordered] == sorted((each.is_open_bid for each in ordered), reverse=True)
    if any(not lease.is_open_bid for lease in ordered):
        assert {lease.lease_id for lease in fleet.leases if lease.is_open_bid} <= {each.lease_id for each in ordered}
