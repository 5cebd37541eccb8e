"""Rule 11: a paused disk that may hold the only checkpoint is released only when the workload says it may be lost."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.limits.limits import Limits
from agent.domain import money
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from agent.simulator.market_model import Contract
from tests.support.losses import seeds
from tests.support.world import Rehearsed, play, work

fates = st.lists(
    st.sampled_from(["outbid", "displaced", "exit", "broke", "restart", "cap", "wait"]), min_size=2, max_size=5
)


def strike(world: Rehearsed, contract: Contract, fate: str) -> None:
    """Let the market, or the work itself, end a running instance's turn."""
    if fate == "exit":
        world.market.advance_to(world.clock.time())
        world.market.exit_container(contract.contract_id)
    elif fate in {"outbid", "displaced"}:
        bid = contract.bid * 4 if fate == "outbid" and contract.bid is not None else None
        world.rival(contract.slice.machine_id, bid=bid)


@pytest.mark.long(18)
@given(seed=seeds, slots=st.integers(1, 2), story=fates)
def test_what_ran_on_a_disk_is_never_released_by_us(seed: int, slots: int, story: list[str]) -> None:
    async def told(world: Rehearsed) -> None:
        await world.until_running()
        for fate in story:
            await world.cycle(minutes=20)
            for contract in [each for each in world.live() if each.holds_gpu]:
                strike(world, contract, fate)
            if fate == "restart":
                await world.restart(after_seconds=300)
            elif fate == "broke":
                world.weather("no_credit", seconds=900)
            elif fate == "cap":
                world.app.rules = dataclasses.replace(world.app.rules, caps=Limits(per_day=money.usd("0.01")))
        await world.cycle(minutes=120)
        ended = [contract for contract in world.contracts() if contract.ended is not None]
        assert not [contract for contract in ended if contract.first_started is not None], "the only copy is gone"

    disk = work(slots=slots, checkpoint=Checkpoint(place=CheckpointPlace.DISK))
    play(told, seed=seed, workloads=(disk,))
