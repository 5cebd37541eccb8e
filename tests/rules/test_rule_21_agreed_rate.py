"""Rule 21: the listed rate is metered, but not below the agreed one; a strange rate is metered once it is confirmed."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.facts import Alert, LeaseChanged
from agent.decide.reconcile import agreed_rate, outcomes
from agent.decide.reconcile.pass_memory import Memory
from agent.domain import money
from agent.domain.market.instance import Instance
from agent.domain.market.market_rules import ASSUMED, MarketRules
from agent.domain.money import UsdPerHour
from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import Reason, Rebid
from agent.domain.work.order import Order
from agent.domain.work.workload import Checkpoint
from tests.support import builders, listings
from tests.support.losses import seeds
from tests.support.world import Rehearsed, play, rehearsed, work

CENT = 0.01
LIE_MINUTES = 10.0


def _rise(world: Rehearsed, held: Lease, factor: float) -> None:
    world.market.advance_to(world.clock.time())
    [rise] = world.market.landlord.raise_price(int(held.host_id), factor)
    world.market.landlord.answer(rise.rise_id, is_accepted=True)


def _poll_each_minute(world: Rehearsed) -> None:
    world.config = replace(world.config, poll=timedelta(minutes=1))


async def charged(world: Rehearsed) -> float:
    """Return the market's real charges."""
    world.market.advance_to(world.clock.time())
    world.market.charged_total()
    return sum(sum(contract.charged.values()) for contract in world.contracts())


@given(
    seed=seeds,
    factor=st.sampled_from([0.0, 0.1, 0.5, 0.9, 4.0, 1000.0]),
    strategy=st.sampled_from(["patient", "ondemand"]),
    restarts=st.booleans(),
)
def test_a_wrong_price_of_ten_minutes_changes_no_count(
    seed: int, factor: float, strategy: str, *, restarts: bool
) -> None:
    async def story(world: Rehearsed) -> None:
        world.is_checked = False
        held = await world.until_running()
        await world.cycle(minutes=5)
        world.weather("field_lie", field="price", how="times", value=factor, route="GET /instances")
        await world.cycle(minutes=LIE_MINUTES / 2)
        if restarts:
            await world.restart()
        await world.cycle(minutes=LIE_MINUTES / 2)
        assert [alert.reason_code for alert in await world.events("alert.rate_doubted")]
        world.still()
        await world.cycle(minutes=2)
        lease = world.lease()
        assert (lease.lease_id, lease.state) == (held.lease_id, LeaseState.RUNNING)
        assert (lease.gpu_rate, lease.doubted_rate) == (held.gpu_rate, None)
        assert -CENT <= await world.spend() - await charged(world) <= 2 * CENT

    play(story, seed=seed, workloads=(work(strategy=strategy),))


@pytest.mark.parametrize("factor", [2.0, 0.5])
async def test_a_real_change_is_metered_once_a_look_by_id_and_further_listings_agree(
    tmp_path: Any, factor: float
) -> None:
    """A person changed the bid at the market: a rise is counted from the listing that showed it, restart or not."""
    async with rehearsed(tmp_path) as world:
        world.is_checked = False
        held = await world.until_running()
        await world.cycle(minutes=5)
        contract = world.contract()
        world.market.advance_to(world.clock.time())
        assert contract.bid is not None
        contract.bid *= factor
        await world.cycle()
        await world.cycle()
        assert world.lease().gpu_rate == held.gpu_rate, "believed before it was confirmed"
        await world.restart()
        await world.until(lambda: world.lease().gpu_rate != held.gpu_rate, minutes=17)
        assert world.lease().gpu_rate.dollars == pytest.approx(held.gpu_rate.dollars * factor, abs=1e-4)
        assert world.lease().agreed == world.lease().gpu_rate
        assert world.calls("GET", f"/instances/{held.instance_id}")
        await world.cycle(minutes=2)
        over = await world.spend() - await charged(world)
        waited = agreed_rate.PATIENCE.total_seconds() + 60
        fallen = max(0.0, (1 - factor) * held.gpu_rate.dollars * waited / 3600)
        assert -CENT <= over <= fallen + 2 * CENT


@pytest.mark.parametrize("factor", [2.0, 4.0])
async def test_a_rise_while_nobody_looked_is_owed_from_the_look_before(tmp_path: Any, factor: float) -> None:
    """A person accepts a host's rise while no daemon runs: nobody saw when it began."""
    async with rehearsed(tmp_path, workloads=(work(strategy="ondemand"),)) as world:
        world.is_checked = False
        held = await world.until_running()
        await world.cycle(minutes=5)
        world.market.advance_to(world.clock.time())
        [rise] = world.market.landlord.raise_price(int(held.host_id), factor)
        world.market.landlord.answer(rise.rise_id, is_accepted=True)
        await world.restart(after_seconds=7200.0)
        await world.cycle()
        assert world.lease().gpu_rate == held.gpu_rate, "believed before it was confirmed"
        await world.restart()
        await world.until(lambda: world.lease().gpu_rate != held.gpu_rate, minutes=17)
        assert world.lease().gpu_rate.dollars == pytest.approx(held.gpu_rate.dollars * factor, abs=1e-4)
        assert -CENT <= await world.spend() - await charged(world) <= 2 * CENT


@pytest.mark.parametrize("factor", [2.0, 4.0])
@pytest.mark.parametrize("restarts", [False, True])
async def test_a_rise_is_owed_although_the_lease_stopped_before_it_was_believed(
    tmp_path: Any, factor: float, *, restarts: bool
) -> None:
    """A person pauses the workload while the rise is doubted. A paused lease costs no more."""
    async with rehearsed(tmp_path, workloads=(work(strategy="ondemand"),)) as world:
        world.is_checked = False
        held = await world.until_running()
        _poll_each_minute(world)
        await world.cycle(minutes=7)
        _rise(world, held, factor)
        await world.cycle(minutes=1 if factor < agreed_rate.QUICK_RISE else 12)
        assert world.lease().gpu_rate == held.gpu_rate, "believed before it stopped"
        assert world.lease().doubted_rate is not None
        await world.app.say(Order("pause", "train"), "a test")
        if restarts:
            await world.restart()
        await world.until(lambda: world.lease().state is LeaseState.PAUSED, minutes=3)
        await world.until(lambda: world.lease().doubted_rate is None, minutes=30)
        assert world.lease().gpu_rate.dollars == pytest.approx(held.gpu_rate.dollars * factor, abs=1e-4)
        # Nobody saw when it rose within the minute before the look that showed it.
        unseen = (factor - 1) * held.gpu_rate.dollars / 60
        assert -CENT <= await world.spend() - await charged(world) <= CENT + unseen
        await world.app.say(Order("resume", "train"), "a test")
        await world.until(lambda: world.lease().state is LeaseState.RUNNING, minutes=30)
        await world.cycle(minutes=6)
        assert -CENT <= await world.spend() - await charged(world) <= CENT + unseen


@pytest.mark.parametrize("is_counted", [True, False])
async def test_a_rise_of_up_to_three_times_is_owed_by_a_lease_that_ends_before_it_is_believed(
    tmp_path: Any, *, is_counted: bool
) -> None:
    """Nobody can ask for the instance any more. A price that rose further is more likely a lie, and is not counted."""
    async with rehearsed(tmp_path, workloads=(work(strategy="ondemand"),)) as world:
        world.is_checked = False
        held = await world.until_running()
        _poll_each_minute(world)
        await world.cycle(minutes=7)
        factor = agreed_rate.QUICK_RISE - 0.1 if is_counted else agreed_rate.QUICK_RISE + 0.1
        _rise(world, held, factor)
        await world.cycle(minutes=1 if is_counted else 5)
        await world.app.say(Order("release", held.lease_id), "a test")
        await world.until(lambda: held.lease_id not in {each.lease_id for each in world.leases()}, minutes=5)
        [ended] = [each for each in await world.past_leases() if each.lease_id == held.lease_id]
        assert ended.doubted_rate is not None, "believed before it ended"
        over = await world.spend() - await charged(world)
        assert (abs(over) <= CENT) is is_counted
        assert over <= CENT


def test_a_rise_is_owed_although_our_own_bid_replaced_it() -> None:
    """Another raised our bid at the market, and ours came before that was believed."""
    low = money.per_hour("0.20")
    held = builders.lease(gpu_rate=low, agreed_rate=low, accrued_until=builders.ago(minutes=1))
    view = builders.view(instances=(builders.instance(gpu_rate=money.per_hour("0.50")),))
    fleet = builders.fleet(leases=(held,), markets={"vast": view}, workloads=(builders.workload(),))
    doubted = agreed_rate.settle(fleet, view, held, view.instances[0], builders.ago(seconds=30)).lease
    order = Rebid(doubted, money.per_hour("0.30"), Reason("test", "a test"))
    outcome = outcomes.written(order, builders.NOW, Checkpoint())
    counted = sum(charge.gpu.micros for charge in outcome.charges)
    assert counted == low.over(60).micros + money.per_hour("0.30").over(30).micros
    assert (outcome.lease.doubted_rate, outcome.lease.agreed_until) == (None, None)


def test_a_rise_that_the_host_announced_is_metered_at_once() -> None:
    """The announced rate is owed from the look before the first listing that shows it."""
    held = builders.lease(gpus=2, gpu_rate=money.per_hour("0.40"), agreed_rate=money.per_hour("0.40"))
    row = builders.instance(gpu_rate=money.per_hour("1.00"))
    rise = builders.event("price_rise", new_rate=money.per_hour("0.50"))
    view = builders.view(instances=(row,), rises=(rise,))
    fleet = builders.fleet(leases=(held,), markets={"vast": view}, workloads=(builders.workload(),))
    before = builders.NOW - timedelta(seconds=15)
    rated = agreed_rate.settle(fleet, view, held, row, before)
    assert (rated.row.gpu_rate, rated.lease.agreed) == (money.per_hour("1.00"), money.per_hour("1.00"))
    assert rated.rise is not None
    owed = rated.rise.owed((), builders.NOW)
    assert sum(charge.gpu.micros for charge in owed) == money.per_hour("0.60").over(15).micros
    assert list(agreed_rate.alerts(fleet)) == []
    unannounced = msgspec.structs.replace(view, rises=())
    assert agreed_rate.settle(fleet, unannounced, held, row, before).row.gpu_rate == money.per_hour("0.40")


@pytest.mark.parametrize(("factor", "minutes"), [(1.4, 0), (2.9, 1), (3.1, 15), (0.99, 15), (0.999, 0)])
def test_how_long_a_rate_is_doubted(factor: float, minutes: int) -> None:
    held = builders.lease()
    row = builders.instance(gpu_rate=UsdPerHour(round(held.gpu_rate.micros * factor)))
    for poll in range(0, 20 * 60, 15):
        now = builders.NOW + timedelta(seconds=poll)
        view = builders.view(instances=(row,))
        fleet = builders.fleet(leases=(held,), markets={"vast": view}, now=now)
        seen = msgspec.structs.replace(view, looked_up=agreed_rate.unconfirmed(fleet, view, (held,)))
        rated = agreed_rate.settle(fleet, seen, held, row, now)
        if rated.row.gpu_rate == row.gpu_rate:
            break
        held = rated.lease
    assert poll // 60 <= minutes <= (poll + 30) // 60


def _settled(held: Lease, row: Instance, second: float) -> agreed_rate.Rated:
    """Return what a listing makes of a lease that was last listed ten seconds before."""
    now = builders.NOW + timedelta(seconds=second)
    view = builders.view(instances=(row,))
    fleet = builders.fleet(leases=(held,), markets={"vast": view}, now=now)
    return agreed_rate.settle(fleet, view, held, row, now - timedelta(seconds=10))


def _priced(factor: float) -> Instance:
    return builders.instance(gpu_rate=UsdPerHour(round(builders.lease().gpu_rate.micros * factor)))


UNPRICED = builders.instance(gpu_rate=builders.lease().gpu_rate, unread=frozenset({"gpu_rate"}))
"""A row whose price could not be read; our own record fills it in."""


@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_a_row_without_a_price_says_nothing_about_a_doubted_one(factor: float) -> None:
    first = _settled(builders.lease(), _priced(factor), 0).lease
    second = _settled(first, UNPRICED, 10)
    assert (second.lease, second.rise) == (first, None)
    assert second.row.gpu_rate == first.gpu_rate


@pytest.mark.parametrize("factor", [1.2, 2.0])
def test_a_rise_is_owed_from_the_last_look_that_showed_a_price(factor: float) -> None:
    held = _settled(builders.lease(), UNPRICED, 0).lease
    rated = _settled(held, _priced(factor), 10)
    since = rated.rise.since if rated.rise is not None else rated.lease.agreed_until
    assert since == builders.NOW - timedelta(seconds=10)


def test_a_rise_after_a_doubted_fall_is_owed_from_the_last_look_at_that() -> None:
    held = _settled(builders.lease(), _priced(0.5), 0).lease
    rated = _settled(held, _priced(2.0), 10)
    assert rated.lease.agreed_until == builders.NOW


def test_a_price_that_is_read_again_unchanged_leaves_no_trace_of_the_row_without_one() -> None:
    held = builders.lease(agreed_rate=builders.lease().gpu_rate)
    assert _settled(_settled(held, UNPRICED, 0).lease, _priced(1.0), 10).lease == held


MOVES = st.lists(st.tuples(st.sampled_from([0.3, 0.5, 0.7, 0.9]), st.integers(1, 60)), min_size=40, max_size=60)
"""Shares of the bid that the market charges one after the other, and for how many polls each."""


@given(moves=MOVES)
def test_a_fall_is_followed_however_often_the_price_moves_and_never_counts_too_low(
    moves: list[tuple[float, int]],
) -> None:
    """Each move began the doubt anew, so that a price that moved every few minutes was never believed."""
    held, poll, told = builders.lease(), 15, list[UsdPerHour]()
    patience = int(agreed_rate.PATIENCE.total_seconds()) // poll + 3
    rates = [UsdPerHour(round(held.agreed.micros * share)) for share, polls in moves for _ in range(polls)]
    agreed = held.agreed
    for at, rate in enumerate(rates):
        told.append(rate)
        row, now = builders.instance(gpu_rate=rate), builders.NOW + timedelta(seconds=poll * at)
        view = builders.view(instances=(row,))
        fleet = builders.fleet(leases=(held,), markets={"vast": view}, now=now)
        seen = msgspec.structs.replace(view, looked_up=agreed_rate.unconfirmed(fleet, view, (held,)))
        rated = agreed_rate.settle(fleet, seen, held, row, now)
        held = msgspec.structs.replace(rated.lease, gpu_rate=rated.row.gpu_rate)
        # A rise over a believed fall is doubted for three listings, and owed from the first.
        is_owed = held.doubted_rate is not None and held.doubted_rate > held.agreed
        assert held.gpu_rate >= rate or is_owed
        most = max(told[-2 * patience :]) if at >= patience else agreed
        assert held.gpu_rate <= most


@pytest.mark.parametrize("shares", [(0.9, 0.5, 0.7), (1.6, 2.5, 4.0)])
def test_of_a_price_that_keeps_moving_one_alert_is_sent(shares: tuple[float, ...]) -> None:
    held = builders.lease()
    keys = set()
    for share in shares:
        row = builders.instance(gpu_rate=UsdPerHour(round(held.agreed.micros * share)))
        fleet = builders.fleet(leases=(held,), markets={"vast": builders.view(instances=(row,))})
        keys |= {alert.key for alert in agreed_rate.alerts(fleet)}
    assert len(keys) == 1


async def test_a_price_that_moves_under_our_bid_is_followed(tmp_path: Any) -> None:
    """Someone else changed the bid at the market again and again; a restart forgets nothing."""
    async with rehearsed(tmp_path) as world:
        world.is_checked = False
        held = await world.until_running()
        await world.cycle(minutes=5)
        contract = world.contract()
        assert contract.bid is not None
        first = contract.bid
        for factor in (0.9, 0.85, 0.9, 0.85):
            world.market.advance_to(world.clock.time())
            contract.bid = first * factor
            await world.cycle(minutes=5)
        await world.restart()
        await world.cycle(minutes=2)
        assert world.lease().gpu_rate.dollars == pytest.approx(held.gpu_rate.dollars * 0.9, abs=1e-4)
        over = await world.spend() - await charged(world)
        assert -CENT <= over <= 0.15 * held.gpu_rate.dollars * 22 / 60 + 2 * CENT


@pytest.mark.parametrize("state", [IntentState.SENT, IntentState.IN_DOUBT])
def test_while_a_rebid_is_in_doubt_the_higher_bid_is_metered(state: IntentState) -> None:
    held = builders.lease(agreed_rate=money.per_hour("0.22"))
    view = builders.view(instances=(builders.instance(),))
    order = builders.intent(kind=IntentKind.REBID, state=state, lease_id=held.lease_id, price=money.per_hour("0.40"))
    fleet = builders.fleet(leases=(held,), intents=(order,), markets={"vast": view})
    rated = agreed_rate.settle(fleet, view, held, view.instances[0], builders.NOW)
    assert (rated.row.gpu_rate, rated.lease.agreed) == (money.per_hour("0.40"), money.per_hour("0.22"))
    shown = builders.instance(gpu_rate=money.per_hour("0.40"))
    rated = agreed_rate.settle(fleet, view, held, shown, builders.NOW)
    assert (rated.row.gpu_rate, rated.lease.agreed) == (money.per_hour("0.40"), money.per_hour("0.40"))
    assert list(agreed_rate.alerts(fleet)) == []


async def test_the_discount_of_a_deposit_is_metered_once_confirmed_and_owed_again_when_it_is_used_up(
    tmp_path: Any,
) -> None:
    """A person prepaid an instance on demand at the market: the rate it lists stays, and less is charged."""
    async with rehearsed(tmp_path, workloads=(work(strategy="ondemand"),), credit=5000.0) as world:
        world.is_checked = False
        held = await world.until_running()
        world.market.advance_to(world.clock.time())
        contract = world.contract()
        contract.host.credit_discount = 0.4
        landlord = world.market.landlord
        _, discount = landlord.prepay(contract, 6 * 720 * contract.locked_ask * contract.slice.num_gpus)
        assert discount == pytest.approx(0.4)
        await world.cycle(minutes=2)
        assert world.lease().gpu_rate == held.gpu_rate, "believed before it was confirmed"
        await world.until(lambda: world.lease().gpu_rate != held.gpu_rate, minutes=17)
        assert world.lease().gpu_rate.dollars == pytest.approx(held.gpu_rate.dollars * 0.6, abs=1e-4)
        await world.cycle(minutes=60)
        waited = agreed_rate.PATIENCE.total_seconds() + 60
        fallen = 0.4 * held.gpu_rate.dollars * waited / 3600
        assert -CENT <= await world.spend() - await charged(world) <= fallen + 2 * CENT
        world.market.advance_to(world.clock.time())
        world.market._desk.discount(contract, 0.0)
        await world.until(lambda: world.lease().gpu_rate == held.gpu_rate, minutes=3)
        await world.cycle(minutes=10)
        assert -CENT <= await world.spend() - await charged(world) <= fallen + 2 * CENT


KEEPS_PRICE = msgspec.structs.replace(ASSUMED, keeps_price=True)
LONG_POLLS = int(agreed_rate.PATIENCE / listings.POLL) + 9


@pytest.mark.parametrize(
    ("rules", "shown", "intent_id", "metered"),
    [
        (KEEPS_PRICE, timedelta(minutes=50), "i-1", "0.22"),
        (KEEPS_PRICE, timedelta(0), "i-1", "0.11"),
        (KEEPS_PRICE, timedelta(minutes=50), "", "0.11"),
        (ASSUMED, timedelta(minutes=50), "i-1", "0.11"),
    ],
    ids=["shown as agreed", "never shown as agreed", "adopted", "a price may fall there"],
)
def test_a_fall_is_not_believed_where_an_instance_keeps_the_price_of_its_rent(
    rules: MarketRules, shown: timedelta, intent_id: str, metered: str
) -> None:
    """All answers may be wrong alike for an hour; what was agreed was listed before."""
    held = builders.lease(intent_id=intent_id, read_back_at=builders.NOW - shown)
    row, memory, keys = builders.instance(gpu_rate=builders.per_hour("0.11")), Memory(), set[str]()
    for at in range(1, LONG_POLLS):
        looked = {"looked_up": frozenset({row.instance_id}), "rules": rules}
        result = listings.seen(held, row, at=at, memory=memory, **looked)
        memory = result.memory
        held = next((fact.after for fact in result.facts if isinstance(fact, LeaseChanged)), held)
        keys |= {fact.key for fact in result.facts if isinstance(fact, Alert)}
    assert held.gpu_rate == builders.per_hour(metered)
    assert keys == {f"{held.lease_id}@fall"}
