"""A bid below the true floor is refused and leaves a stopped instance that bills its disk: it is found and released."""

from pathlib import Path

from agent.domain.money import per_hour
from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.record.lease import LeaseState
from agent.simulator.vast.model import EndCause
from tests.support.world import POLL, Rehearsed, rehearsed


async def _take_the_best(tmp_path: Path) -> int:
    """Return the host that a first rent goes to."""
    async with rehearsed(tmp_path) as world:
        await world.cycle()
        return world.contract().slice.machine_id


async def _make_quotes_stale(world: Rehearsed, machine_id: int) -> None:
    """Let a rival take the slice: for ten minutes the search goes on showing the floor of before."""
    world.rival(machine_id, bid=0.25, gpus=1)
    world.clock.advance(300)


async def test_under_bid_leftover_is_released(tmp_path: Path) -> None:
    (tmp_path / "scout").mkdir()
    machine_id = await _take_the_best(tmp_path / "scout")
    async with rehearsed(tmp_path, poll=POLL) as world:
        await _make_quotes_stale(world, machine_id)
        await world.cycle()

        leftover = world.contract()
        assert (leftover.slice.machine_id, leftover.is_underbid) == (machine_id, True)
        rent = (await world.intents(IntentKind.RENT))[0]
        assert (rent.state, rent.outcome) == (IntentState.REJECTED, "bid_too_low")
        lease = world.lease()
        assert (lease.instance_id, lease.state) == (str(leftover.contract_id), LeaseState.RELEASING)

        await world.until_running()
        await world.cycle(minutes=1)
        assert leftover.end_cause is EndCause.DESTROYED
        assert leftover.ended is not None
        assert leftover.ended - leftover.created < 60
        assert world.lease().host_id != str(machine_id)
        assert (await world.events("lease.leftover"))[0].intent_id == rent.intent_id


async def test_leftover_whose_reply_was_lost_is_managed_too(tmp_path: Path) -> None:
    """The refusal that named it never came: the listing shows a stopped instance with the label of a rent in doubt."""
    (tmp_path / "scout").mkdir()
    machine_id = await _take_the_best(tmp_path / "scout")
    async with rehearsed(tmp_path) as world:
        await _make_quotes_stale(world, machine_id)
        world.weather("reset", when="after", route="PUT /asks", seconds=1)
        await world.cycle()
        leftover = world.contract()
        assert leftover.is_underbid
        assert world.open_intents()[0].state is IntentState.IN_DOUBT

        held = await world.until_running(minutes=30)
        await world.cycle(minutes=2)
        assert world.live() == [world.contract()], "one instance bills: the leftover, raised, or another in its place"
        assert (leftover.ended is None) is (held.instance_id == str(leftover.contract_id))
        assert len(await world.intents(IntentKind.RENT)) == len(world.contracts())


async def test_a_bid_that_was_too_low_is_not_repeated(tmp_path: Path) -> None:
    """Only one host is left. A rival holds it at $0.0904, which a search shows with three decimals: $0.090."""
    (tmp_path / "scout").mkdir()
    machine_id = await _take_the_best(tmp_path / "scout")
    async with rehearsed(tmp_path) as world:
        for other in {row.machine_id for row in world.market.listed()} - {machine_id}:
            world.market.set_host_gone(other)
        world.rival(machine_id, bid=0.0904, gpus=1)
        world.clock.advance(1200)
        held = await world.until_running(minutes=30)
        refused, rented = await world.intents(IntentKind.RENT)
        assert (refused.outcome, refused.price) == ("bid_too_low", per_hour("0.09"))
        assert held.gpu_rate == rented.price == per_hour("0.0945")
