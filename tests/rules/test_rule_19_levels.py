"""Rule 19: what must follow from something seen is found again in every cycle until it is recorded.

A verdict that is only counted in memory is lost when its cycle looks twice, when its record cannot be written, or when
the program dies. An instance of ours without a lease meets each of these in the cycles that would decide, and a loss
is first seen by the second look of a cycle.
"""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.domain.market.interruption import Cause
from agent.domain.market.label import Label
from agent.domain.record.lease import LeaseState
from agent.domain.slot import Slot
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


async def _one_cycle(world: Rehearsed, *, is_writable: bool, table: str = "leases") -> None:
    if is_writable:
        await world.cycle()
        return
    world.refuse_rows(table)
    try:
        await world.app.cycle()
    except LedgerError:
        world.clock.advance(15)
    finally:
        world.accept_rows()


@pytest.mark.parametrize("unwritable", [set(), {1}, {0, 1}])
def test_a_loss_is_recorded_while_others_are_missing(unwritable: set[int]) -> None:
    """A missing lease makes every cycle look twice; the second look of one is the first to show the loss."""

    async def story(world: Rehearsed) -> None:
        await world.until_running()
        *others, held = world.leases()
        for lease in others:
            world.market.set_host_gone(int(lease.host_id))
        await world.cycle(minutes=2)
        assert {lease.state for lease in world.leases()} == {LeaseState.MISSING, LeaseState.RUNNING}

        def rival() -> None:
            world.rival(int(held.host_id))

        world.market._timeline.put(world.clock.time() + 0.5, rival)
        await world.cycle()
        assert world.app._cycle._memory.suspicions, "the first look showed it: the story tells nothing"
        for number in range(3):
            await _one_cycle(world, is_writable=number not in unwritable)
        (after,) = [lease for lease in world.leases() if lease.lease_id == held.lease_id]
        assert after.interrupted_by is Cause.DISPLACED
        assert len(await world.events("lease.interrupted")) == 1, "recorded once"

    play(story, seed=3, workloads=(work(slots=3),))


def test_an_alert_that_could_not_be_recorded_is_sent_when_it_can_and_once_while_it_lasts() -> None:
    async def story(world: Rehearsed) -> None:
        held = await world.until_running()
        edited = world.weather("label_edit", contract_id=int(held.instance_id))
        for is_writable in (False, False, True, True):
            await _one_cycle(world, is_writable=is_writable, table="events")
        await world.cycle(minutes=2)
        (alert,) = await world.events("alert.label_lost")
        assert held.lease_id in alert.reason
        world.simulator.weather.clear(edited)
        await world.cycle(minutes=2)
        world.weather("label_edit", contract_id=int(held.instance_id))
        await world.cycle(minutes=2)
        assert len(await world.events("alert.label_lost")) == 2, "it came back"

    play(story, seed=3, workloads=(work(),))
