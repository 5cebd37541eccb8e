"""Rule 19: what must follow from something seen is found again in every cycle until it is recorded.

A verdict that is only counted in memory is lost when its cycle looks twice, when its record cannot be written, or when
the program dies; here an instance of ours without a lease meets each of these in the cycles that would decide.
"""

from hypothesis import example, given
from hypothesis import strategies as st

from agent.domain.market.label import Label
from agent.domain.work.workload import Slot
from agent.ledger.ledger_errors import LedgerError
from agent.markets import labels
from tests.support.losses import seeds
from tests.support.world import FLEET, Rehearsed, play, work


@given(
    seed=seeds,
    name=st.sampled_from(["train", "forgotten"]),
    lost_in=st.none() | st.integers(0, 3),
    unwritable=st.sets(st.integers(0, 3)),
    dies_in=st.none() | st.integers(0, 3),
)
@example(seed=3, name="train", lost_in=1, unwritable=set(), dies_in=None)
@example(seed=3, name="train", lost_in=None, unwritable={1, 2}, dies_in=None)
def test_a_stranger_is_recorded_whatever_happens_in_the_deciding_cycles(
    seed: int, name: str, lost_in: int | None, unwritable: set[int], dies_in: int | None
) -> None:
    async def story(world: Rehearsed) -> None:
        held = await world.until_running()
        await world.close()
        stranger = str(world.foreign(labels.text(Label(FLEET, Slot(name, 0), "feedfacefeedface"))).contract_id)
        world.clock.advance(30)
        await world.open()
        for number in range(4):
            if number == lost_in:
                world.rival(int(held.host_id))
            if number == dies_in:
                await world.restart(after_seconds=15)
            await _one_cycle(world, is_writable=number not in unwritable)
        await world.cycle(minutes=2)
        assert stranger in {lease.instance_id for lease in world.leases()}
        found = [event.reason_code for event in await world.events("orphan.seen")]
        assert found == ["hold"], "recorded once"

    play(story, seed=seed, workloads=(work(),))


async def _one_cycle(world: Rehearsed, *, is_writable: bool) -> None:
    if is_writable:
        await world.cycle()
        return
    world.refuse_rows("leases")
    try:
        await world.app.cycle()
    except LedgerError:
        world.clock.advance(15)
    finally:
        world.accept_rows()
