"""Rule 14: elapsed time is monotonic; a wall clock off the market's pays nothing; budgets are UTC days and months."""

import dataclasses
import datetime as dt

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.clock import SteppedClock
from agent.decide.limits.limits import Limits
from agent.domain import money
from agent.domain.record.lease import Bills, LeaseState
from agent.domain.work.order import Order
from agent.domain.work.run_times.run_window import Outside, WindowRule
from agent.ledger.file import sidecar
from agent.ledger.tables.spend_rows import MONTH_SEED, SpendKey
from tests.support import engines
from tests.support.losses import seeds
from tests.support.world import CENT_POLL, HOURS_POLL, POLL, START, Rehearsed, play, work

jumps = st.sampled_from([-86_400, -3_600, -90, 90, 3_600, 86_400])


class Machine:
    """The machine's clock, its wall time off by `seconds`; monotonic time goes on as it was."""

    def __init__(self, clock: SteppedClock, seconds: float) -> None:
        self._clock = clock
        self._off = dt.timedelta(seconds=seconds)

    def now(self) -> dt.datetime:
        """Return the wrong time."""
        return self._clock.now() + self._off

    def monotonic(self) -> float:
        """Return the right seconds."""
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await self._clock.sleep(seconds)


async def jump(world: Rehearsed, seconds: float, *, is_restarted: bool = False) -> None:
    """Set the program's wall clock off the market's, while it runs or while it is down."""
    machine, right = Machine(world.clock, seconds), world.clock
    if is_restarted:
        await world.close()
        world.clock = machine  # type: ignore[assignment]
        try:
            await world.open()
        finally:
            world.clock = right
    world.app.clock._machine = machine


def charged(world: Rehearsed) -> float:
    """Return the market's charges so far."""
    world.market.charged_total()  # brings every contract up to now
    return sum(sum(contract.charged.values()) for contract in world.contracts())


@given(seed=seeds, seconds=jumps, is_restarted=st.booleans(), back=st.booleans())
def test_a_jump_bills_nothing_releases_nothing_and_pays_nothing(
    seed: int, seconds: float, is_restarted: bool, back: bool
) -> None:
    async def story(world: Rehearsed) -> None:
        held = await world.until_running()
        await world.cycle(minutes=10)
        await jump(world, seconds, is_restarted=is_restarted)
        orders = len(world.orders)
        done = await world.cycle(minutes=20)
        assert abs(done.fleet.markets["vast"].clock_skew_seconds + seconds) < 5
        assert len(world.orders) == orders, "wrote for the jump's sake"
        world.market.stop(int(held.instance_id))
        await world.cycle(minutes=40)
        # A lease that was truly lost may be let go.
        assert not any(order.kind.is_paying for order in world.orders[orders:]), "paid while its clock was off"
        if back:
            await jump(world, 0)
            await world.cycle(minutes=120)
            assert [lease.state for lease in world.leases()] == [LeaseState.RUNNING]
        counted, true = await world.spend(), charged(world)
        assert abs(counted - true) <= max(0.02, 0.01 * true), f"counted {counted}, charged {true}"

    play(story, seed=seed, poll=CENT_POLL)


@pytest.mark.nightly
@settings(max_examples=8)
@given(seed=seeds, seconds=jumps, is_restarted=st.booleans(), outside=st.sampled_from(Outside))
def test_a_jump_ends_and_begins_no_window(seed: int, seconds: float, is_restarted: bool, outside: Outside) -> None:
    """By the true time one window closes at 01:00, and the other opens then: the doubt spans both."""
    now, late = (WindowRule(cron, dt.timedelta(hours=1)) for cron in ("0 0 * * *", "0 1 * * *"))
    one = dt.timedelta(hours=1)

    async def story(world: Rehearsed) -> None:
        await world.until(lambda: bool(world.leases()) and world.lease().state is LeaseState.RUNNING)
        await world.cycle(minutes=(START + one - world.clock.now()).total_seconds() / 60 - 10)
        await jump(world, seconds, is_restarted=is_restarted)
        orders = len(world.orders)
        await world.cycle(minutes=20)
        assert world.clock.now() > START + one, "the windows did not change: the story tells nothing"
        assert len(world.orders) == orders, "a window began or ended by a doubted clock"
        assert [str(lease.slot) for lease in world.leases()] == ["train/0"]
        assert world.lease().state is LeaseState.RUNNING
        await jump(world, 0)
        await world.cycle(minutes=25)
        holding = [lease for lease in world.leases() if lease.bills is Bills.GPU_AND_DISK]
        assert [str(lease.slot) for lease in holding] == ["late/0"], "by now the one is over and the other has begun"

    works = (work(windows=(now,), outside=outside), work("late", windows=(late,)))
    play(story, seed=seed, workloads=works)


@given(seed=seeds, month=st.booleans(), hour=st.sampled_from([20, 23]))
def test_a_budget_ends_with_its_utc_day_or_month(seed: int, month: bool, hour: int) -> None:
    """The machine's zone plays no part: all is UTC."""
    start = dt.datetime(2026, 7, 31, hour, 30, tzinfo=dt.UTC)
    midnight = dt.datetime(2026, 8, 1, tzinfo=dt.UTC)
    cap = money.usd("0.03")

    async def story(world: Rehearsed) -> None:
        was_over = False
        while world.clock.now() < midnight + dt.timedelta(minutes=40):
            done = await world.cycle()
            now = world.clock.now()
            is_over = max(done.plan.standing.today if not month else done.plan.standing.month, money.ZERO) >= cap
            if is_over:
                assert not any(intent.kind.is_paying for intent in done.done)
            if now < midnight and is_over:
                was_over = True
                world.clock.advance(max(0.0, min(600.0, (midnight - now).total_seconds() - 30)))
                world.market.advance_to(world.clock.time())
        paid = [order.at for order in world.orders if order.kind.is_paying]
        if was_over:
            assert any(at >= midnight.timestamp() for at in paid), "did not go on in the new window"
        else:  # so cheap a lease reaches the cap after midnight at most
            assert len(paid) == 1
            assert is_over or world.lease().state is LeaseState.RUNNING

    limits = Limits(per_month=cap) if month else Limits(per_day=cap)
    play(
        story,
        seed=seed,
        poll=CENT_POLL,
        limits=limits,
        start=start,
        workloads=(dataclasses.replace(work(), image_gb=0.1),),
    )


@given(seed=seeds, skew=st.sampled_from([-300, 61, 120, 7200]))
def test_a_market_whose_date_is_off_is_not_paid(seed: int, skew: float) -> None:
    async def story(world: Rehearsed) -> None:
        world.weather("clock_skew", skew=skew)
        await world.cycle(minutes=20)
        assert not world.orders
        world.still()
        await world.until_running(minutes=60)

    play(story, seed=seed)


@pytest.mark.parametrize("says", [{"how": "plus", "value": 86_400 * 400}, {"how": "plus", "value": -7_200}])
@pytest.mark.parametrize("later", [0, 60])
def test_one_wrong_date_stops_nothing(says: dict[str, object], later: float) -> None:
    """Neither the first one ever nor a later one: the second answer has another time."""

    async def story(world: Rehearsed) -> None:
        if later:
            await world.cycle(minutes=later)
        world.weather("field_lie", field="date", route="/users/current", count=1, **says)
        done = await world.cycle(minutes=6)
        assert not world.simulator.weather.names()
        assert abs(done.fleet.markets["vast"].clock_skew_seconds) < 5
        assert abs((done.fleet.now - world.clock.now()).total_seconds()) < 60
        assert (await world.until_running(minutes=60)).state is LeaseState.RUNNING

    play(story, seed=1, poll=POLL)


@pytest.mark.parametrize("ahead", [3600, 86_400])
def test_a_market_that_is_ahead_for_two_minutes_at_a_start_bills_no_hour(ahead: int) -> None:
    async def story(world: Rehearsed) -> None:
        await world.until_running()
        await world.cycle(minutes=10)
        world.weather("field_lie", field="date", how="plus", value=ahead, seconds=120)
        await world.restart()
        done = await world.cycle(minutes=20)
        assert abs((done.fleet.now - world.clock.now()).total_seconds()) < 60
        counted, true = await world.spend(), charged(world)
        assert abs(counted - true) <= max(0.02, 0.01 * true), f"counted {counted}, charged {true}"

    play(story, seed=1, poll=POLL)


@pytest.mark.parametrize("wrong", [86_400 * 400, 3600, -7_200])
def test_one_wrong_date_at_a_start_sets_no_clock(wrong: int) -> None:
    async def story(world: Rehearsed) -> None:
        await world.until_running()
        world.weather("field_lie", field="date", how="plus", value=wrong, count=1)
        await world.restart()
        assert not world.simulator.weather.names(), "nobody was lied to: the story tells nothing"
        assert abs((world.app.clock.now() - world.clock.now()).total_seconds()) < 60

    play(story, seed=1)


def test_a_record_that_is_ahead_of_the_market_too_proves_no_clock_wrong() -> None:
    async def story(world: Rehearsed) -> None:
        held = await world.until_running()
        world.is_checked = False  # one lease is metered up to the day after tomorrow
        async with world.app.ledger.transaction() as tx:
            tx.update_lease(msgspec.structs.replace(held, accrued_until=world.clock.now() + dt.timedelta(days=2)))
        world.weather("field_lie", field="date", how="plus", value=3600, seconds=120)
        await world.restart()
        done = await world.cycle()
        assert world.simulator.weather.names()
        assert abs((done.fleet.now - world.clock.now()).total_seconds()) < 60

    play(story, seed=1, poll=HOURS_POLL)


@pytest.mark.parametrize("days", [1, 100])
def test_a_machine_that_is_ahead_at_a_start_forgets_no_hold_and_no_spend(days: int) -> None:
    async def story(world: Rehearsed) -> None:
        await world.until_running()
        await world.cycle(minutes=30)
        await world.app.say(Order("kill", "train", span=dt.timedelta(hours=3)), "a test")
        before = world.app.ledger.recollection(world.clock.now())
        await jump(world, 86_400 * days, is_restarted=True)
        await world.cycle(minutes=5)
        await jump(world, 0)
        orders = len(world.orders)
        await world.cycle(minutes=30)
        assert not any(order.kind.is_paying for order in world.orders[orders:]), "rented in spite of the hold"
        after = world.app.ledger.recollection(world.clock.now())
        assert after.holds == before.holds
        assert after.starts == before.starts != ()
        assert after.total.month >= before.total.month > money.ZERO

    play(story, seed=1)


@pytest.mark.parametrize("said", ["junk", "", "Mon, 01 Jan 0001 00:00:00 +1400", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_date_that_is_none_stops_nothing_for_good(said: str) -> None:
    async def story(world: Rehearsed) -> None:
        lie = {"how": "set", "value": said} if said else {"how": "missing"}
        world.weather("field_lie", field="date", seconds=1200, **lie)
        await world.cycle(minutes=25)
        assert (await world.until_running(minutes=60)).state is LeaseState.RUNNING

    play(story, seed=1)


@pytest.mark.parametrize("skew", [-59, 59])
def test_a_minute_is_near_enough(skew: float) -> None:
    async def story(world: Rehearsed) -> None:
        world.weather("clock_skew", skew=skew)
        assert (await world.until_running(minutes=60)).state is LeaseState.RUNNING

    play(story, seed=1)


ACCOUNT = {"route": "/users/current", "probability": 1.0, "seconds": 600}


def test_a_machine_a_day_ahead_at_a_start_bills_no_day_while_the_account_is_refused() -> None:
    """The listing has a time too, and nothing is metered before it."""

    async def story(world: Rehearsed) -> None:
        await world.until_running()
        await world.cycle(minutes=10)
        world.weather("throttle_text", **ACCOUNT)
        orders = len(world.orders)
        await jump(world, 86_400, is_restarted=True)
        for _ in range(3):
            await world.cycle(minutes=8)
            assert abs((world.app.clock.now() - world.clock.now()).total_seconds()) < 60
            counted, true = await world.spend(), charged(world)
            assert abs(counted - true) <= max(0.02, 0.01 * true), f"counted {counted}, charged {true}"
        assert not any(order.kind.is_paying for order in world.orders[orders:]), "paid while its clock was off"

    play(story, seed=1)


def test_one_wrong_date_of_a_listing_sets_no_clock_while_the_account_is_refused() -> None:
    async def story(world: Rehearsed) -> None:
        await world.until_running()
        world.weather("throttle_text", **ACCOUNT)
        world.weather("field_lie", field="date", route="/instances", count=1, how="plus", value=-7_200)
        await world.restart()
        await world.cycle()
        names = [name for _, name in world.simulator.weather.names()]
        assert names == ["throttle_text"], "nobody was lied to: the story tells nothing"
        assert abs((world.app.clock.now() - world.clock.now()).total_seconds()) < 60

    play(story, seed=1)


def test_a_lost_ledger_counts_the_bill_up_to_now_by_a_clock_that_is_a_day_behind() -> None:
    """The bill was asked for up to the machine's own time, and the last day was in no budget of the month."""

    async def story(world: Rehearsed) -> None:
        world.is_checked = False
        await world.until_running()
        await world.close()
        world.clock.advance(30 * 3600)
        world.market.advance_to(world.clock.time())
        before = charged(world)
        engines.lose(world.config.ledger)
        sidecar.sibling(world.config.ledger, ".fleet").unlink()
        await jump(world, -86_400, is_restarted=True)
        reader = await world.app.ledger.reader()
        lines = await reader.spend_by(SpendKey.LEASE)
        counted = sum(line.amount.dollars for line in lines if line.key == MONTH_SEED)
        assert counted == pytest.approx(before, rel=0.02)

    play(story, seed=1)


@pytest.mark.parametrize("refused_minutes", [0, 8])
def test_hours_in_which_the_machine_was_off_are_billed_once_a_market_tells_the_time(refused_minutes: int) -> None:
    async def story(world: Rehearsed) -> None:
        await world.until_running()
        await world.close()
        world.clock.advance(3 * 3600)
        world.market.advance_to(world.clock.time())
        if refused_minutes:
            world.weather("throttle_text", **ACCOUNT | {"seconds": 60 * refused_minutes})
        await world.open()
        await world.cycle(minutes=20)
        counted, true = await world.spend(), charged(world)
        assert true > 0.1, "nothing was billed: the story tells nothing"
        assert abs(counted - true) <= max(0.02, 0.01 * true), f"counted {counted}, charged {true}"

    play(story, seed=1)
