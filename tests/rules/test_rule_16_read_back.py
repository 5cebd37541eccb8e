"""Rule 16: every create is read back (tenure, price, host, disk); a mismatch is released at once."""

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from agent.simulator.vast.model import Contract
from tests.support.losses import seeds
from tests.support.world import Rehearsed, play, rehearsed, work

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
    # An order on demand names no price that could be dropped.
    assume(contract.bid is not None)
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


@pytest.mark.parametrize("is_lost", [False, True], ids=["answered", "found by its label"])
async def test_what_was_listed_as_ordered_may_cost_more_later(tmp_path: Path, *, is_lost: bool) -> None:
    """A person accepts a rise of the host while no daemon runs: a start that was read back before is no mismatch.

    A rent whose answer was lost is read back by the listing that finds it.
    """
    async with rehearsed(tmp_path, workloads=(work(strategy="ondemand"),)) as world:
        if is_lost:
            world.weather("reset", when="after", route="PUT /asks", seconds=1)
        await world.until(lambda: any(is_lost or lease.read_back_at for lease in world.leases()))
        held, contract = world.lease(), world.contract()
        assert held.state is LeaseState.STARTING, "it runs already: the story tells nothing"
        await world.close()
        landlord = world.market.landlord
        (rise,) = landlord.raise_price(contract.slice.machine_id, 1.6)
        landlord.answer(rise.rise_id, is_accepted=True)
        world.clock.advance(600)
        world.market.advance_to(world.clock.time())
        await world.open()
        await world.cycle(minutes=5)
        assert [lease.lease_id for lease in world.leases()] == [held.lease_id]
        assert world.lease().gpu_rate > held.gpu_rate.scaled(1.5)
        assert contract.ended is None
        assert -0.01 <= await world.spend() - world.market.charged_total() <= 0.02


@pytest.mark.parametrize("is_lost", [False, True], ids=["answered", "found by its label"])
@pytest.mark.parametrize(
    ("field", "value", "said"),
    [("num_gpus", 4, "it has 4 GPUs instead of 1"), ("gpu_name", "GTX 1080", "it has GTX 1080 instead of RTX 4090")],
)
async def test_an_instance_with_other_gpus_than_ordered_is_released_at_once(
    tmp_path: Path, field: str, value: object, said: str, *, is_lost: bool
) -> None:
    async with rehearsed(tmp_path) as world:
        if is_lost:
            world.weather("reset", when="after", route="PUT /asks", seconds=1)
        await world.cycle()
        contract = world.contract()
        world.weather("field_lie", field=field, value=value, route="GET /instances")
        await world.cycle()
        assert contract.ended is not None
        (lease,) = await world.past_leases()
        assert lease.end_reason == f"mismatch: {said}"
