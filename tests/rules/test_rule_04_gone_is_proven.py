"""Rule 4: gone means denied by name with a proven key, and absent from two complete listings two minutes apart."""

from hypothesis import example, given
from hypothesis import strategies as st

from agent.domain.record.lease import LeaseState
from agent.ledger.ledger_errors import LedgerError
from tests.support.losses import seeds
from tests.support.world import Rehearsed, play, work

LISTS = "GET /instances"
LOOKS = "GET /instances/{"


@given(
    seed=seeds,
    is_listed=st.booleans(),
    is_shown=st.booleans(),
    is_key_good=st.booleans(),
    seconds=st.sampled_from([30, 100, 170, 400, 1200]),
)
@example(seed=1, is_listed=False, is_shown=False, is_key_good=True, seconds=400)
@example(seed=1, is_listed=False, is_shown=False, is_key_good=False, seconds=1200)
@example(seed=1, is_listed=False, is_shown=True, is_key_good=True, seconds=1200)
@example(seed=1, is_listed=True, is_shown=False, is_key_good=True, seconds=1200)
def test_nothing_less_than_proof_ends_a_lease(
    seed: int, *, is_listed: bool, is_shown: bool, is_key_good: bool, seconds: float
) -> None:
    """The instance lives all the while; the market only says that it does not."""

    async def story(world: Rehearsed) -> None:
        held = await world.until_running()
        world.is_checked = False  # the market lies for longer than any lie that the program must see through
        if not is_listed:
            world.weather("empty_list", route=LISTS)
        if not is_shown:
            world.weather("wrong_account", route=LOOKS)
        if not is_key_good:
            world.weather("server_error_before", route="GET /users")
        orders = len(world.orders)
        until = world.clock.time() + seconds
        was_ended = False
        while world.clock.time() < until:
            await world.cycle()
            is_ended = held.lease_id not in {lease.lease_id for lease in world.leases()}
            is_proven = not is_listed and not is_shown and is_key_good
            assert is_proven or not is_ended
            assert is_proven or len(world.orders) == orders, "released or replaced what was not proven gone"
            if is_ended and not was_ended:
                was_ended = True
                assert world.clock.time() - (until - seconds) >= 120
        if seconds >= 170 and not is_listed and not is_shown and is_key_good:
            assert was_ended, "proven gone, and kept"

    play(story, seed=seed)


@given(seed=seeds, slots=st.integers(2, 5), seconds=st.sampled_from([300, 1500]))
def test_several_at_once_are_the_markets_fault(seed: int, slots: int, seconds: float) -> None:
    async def story(world: Rehearsed) -> None:
        await world.until_running()
        world.is_checked = False
        orders = len(world.orders)
        world.weather("wrong_account", route="/instances", seconds=seconds)
        while world.simulator.weather.names():
            try:
                done = await world.cycle()
            except LedgerError as error:
                raise AssertionError(error) from error
            assert done.plan.standing.instances == slots
        assert len(world.orders) == orders
        assert len(await world.events("alert.market_fault")) == 1
        await world.until_running(minutes=2)
        assert all(lease.state is LeaseState.RUNNING for lease in world.leases())

    play(story, seed=seed, hosts=150, workloads=(work(slots=slots),))
