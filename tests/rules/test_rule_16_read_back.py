"""Rule 16: every create is read back (tenure, price, host, disk); a mismatch is released at once."""

from hypothesis import given
from hypothesis import strategies as st

from agent.domain.record.intent import IntentKind
from agent.simulator.market_model import Contract
from tests.support.losses import seeds
from tests.support.world import Rehearsed, play

factors = st.sampled_from([0.5, 1.0, 1.0 + 1e-9, 1.01, 1.5, 10.0])


@given(
    seed=seeds,
    price=st.none() | factors,
    disk=st.sampled_from([1.0, 0.5, 2.0]),
    is_moved=st.booleans(),
    is_lost=st.booleans(),
)
def test_what_was_not_asked_for_is_released_at_once(
    seed: int, price: float | None, disk: float, *, is_moved: bool, is_lost: bool
) -> None:
    """`price` None drops it: the market then rents on demand and says nothing. Less than was bid is no mismatch."""

    async def story(world: Rehearsed) -> None:
        if is_lost:
            world.weather("reset", when="after", route="PUT /asks", seconds=1)
        await world.cycle()
        contract = world.contract()
        _spoil(world, contract, price, disk, is_moved=is_moved)
        is_spoilt = price is None or price > 1.001 or disk != 1.0 or is_moved

        looked_at = world.clock.time()
        done = await world.cycle()
        released = [intent.kind for intent in done.done] == [IntentKind.RELEASE]
        assert released is is_spoilt
        if is_spoilt:
            assert contract.ended is not None
            assert contract.ended - looked_at < 5
            (lease,) = await world.past_leases()
            assert lease.end_reason.startswith("mismatch: ")
        else:
            await world.until_running()
            assert world.contract() is contract

    play(story, seed=seed)


def _spoil(world: Rehearsed, contract: Contract, price: float | None, disk: float, *, is_moved: bool) -> None:
    assert contract.bid is not None
    contract.bid = None if price is None else contract.bid * price
    contract.disk_gb *= disk
    if is_moved:
        elsewhere = next(
            each
            for each in world.market.slices.values()
            if each.machine_id != contract.slice.machine_id and each.num_gpus == contract.slice.num_gpus
        )
        world.show_elsewhere(contract, elsewhere.machine_id)
