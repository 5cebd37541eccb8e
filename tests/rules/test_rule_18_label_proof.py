"""Rule 18: an id is written to only after two answers, one of them a look by that id, have shown our label on it."""

from hypothesis import example, given
from hypothesis import strategies as st

from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from agent.domain.work.order import Order
from agent.simulator.vast.model import EndCause
from tests.support.losses import seeds
from tests.support.world import HOURS_POLL, Rehearsed, play, work

OVERDUE = "which is too long"
"""The ground of a release that has nothing to do with labels: the host loads the image too slowly."""


@given(seed=seeds, is_again=st.booleans())
@example(seed=3, is_again=False)
@example(seed=156, is_again=True)  # its host loads the image too slowly, so that another one is rented
def test_an_id_in_a_reply_that_is_somebody_elses_is_never_written_to(seed: int, *, is_again: bool) -> None:
    """The instance of the rent is found by its label, once; the owner's own instance is left alone."""

    async def story(world: Rehearsed) -> None:
        theirs = world.foreign(None)
        lie = world.weather("field_lie", field="id", value=theirs.contract_id, route="PUT /asks")
        await world.cycle()
        if not is_again:
            world.simulator.weather.clear(lie)
        (mine,) = world.live()
        held = await world.until_running()
        assert theirs.ended is None
        assert not [order for order in world.orders if order.number == theirs.contract_id and order.route != "asks"]
        if mine.ended is not None:
            released = await world.intents(IntentKind.RELEASE)
            assert [each.lease_id for each in released] == [f"vast-{mine.contract_id}"]
            assert released[0].reason.endswith(OVERDUE)
            mine = world.contract()
        assert held.instance_id == str(mine.contract_id)
        assert world.live() == [mine], "the slot was rented once"
        assert [event.kind for event in await world.events("lease.disowned")] == ["lease.disowned"]
        assert len(await world.events("alert.wrong_instance")) == 1

    play(story, seed=seed, workloads=(work(),))


@given(seed=seeds, is_ours=st.booleans())
def test_a_leftover_of_a_refusal_is_released_only_under_our_label(seed: int, *, is_ours: bool) -> None:
    async def story(world: Rehearsed) -> None:
        theirs = world.foreign(None)
        world.weather("field_lie", field="success", value=False, route="PUT /asks", count=1)
        if not is_ours:
            world.weather("field_lie", field="id", value=theirs.contract_id, route="PUT /asks", count=1)
        await world.cycle()
        (mine,) = world.live()
        await world.cycle(minutes=3)
        assert theirs.ended is None
        assert not [order for order in world.orders if order.number == theirs.contract_id and order.route != "asks"]
        if is_ours:
            assert mine.end_cause is EndCause.DESTROYED, "the leftover is released"
        await world.until_running()

    play(story, seed=seed, workloads=(work(),))


@given(seed=seeds)
def test_nothing_is_written_while_looks_by_id_deny_the_label(seed: int) -> None:
    """A listing alone proves nothing; when the looks agree with it, the lease is managed as any other."""

    async def story(world: Rehearsed) -> None:
        lie = world.weather("field_lie", field="label", value="someone", route="GET /instances/")
        await world.cycle()
        (mine,) = world.live()
        world.rival(mine.slice.machine_id, bid=(mine.bid or 0.1) * 1.5)
        await world.cycle(minutes=5)
        (held,) = world.leases()
        assert not held.is_proven
        assert [order.kind for order in world.orders] == [IntentKind.RENT]
        world.simulator.weather.clear(lie)
        await world.cycle()
        assert world.leases()[0].is_proven
        await world.until_running()

    play(story, seed=seed, workloads=(work(),))


@given(seed=seeds, label=st.sampled_from([None, "", "mine now", "gpubid:0123456789ab:train:0:0123456789abcdef"]))
def test_an_edited_label_stops_strategies_and_nothing_else(seed: int, label: str | None) -> None:
    """It is metered on and alerted once; a person's release still ends it, and our label makes it ours again."""

    async def story(world: Rehearsed) -> None:
        held = await world.until_running()
        mine = world.contract()
        ours = mine.label
        world.is_checked = False  # without our label the witness would take a person's release for a foreign one
        world.market.set_label(mine.contract_id, label or "")
        await world.cycle()
        orders, spent = len(world.orders), await world.spend()
        world.rival(mine.slice.machine_id, bid=held.gpu_rate.dollars * 1.5)
        await world.cycle(minutes=20)
        assert len(world.orders) == orders, "no strategy writes to it"
        assert await world.spend() > spent
        assert [event.reason_code for event in await world.events("alert.label_lost")] == ["label_lost"]
        assert world.lease().is_estranged
        world.market.set_label(mine.contract_id, ours or "")
        await world.cycle()
        assert not world.lease().is_estranged
        world.market.set_label(mine.contract_id, label or "")
        await world.cycle()
        await world.app.say(Order("release", world.lease().lease_id), "a test")
        await world.cycle(minutes=1)
        assert mine.end_cause is EndCause.DESTROYED
        assert all(lease.instance_id != str(mine.contract_id) for lease in world.leases())

    play(story, seed=seed, workloads=(work(),), poll=HOURS_POLL)


@given(seed=seeds)
def test_the_proof_is_kept_over_a_restart_and_found_again_where_it_is_missing(seed: int) -> None:
    async def story(world: Rehearsed) -> None:
        held = await world.until_running()
        assert held.is_proven
        await world.restart(after_seconds=30)
        assert world.lease().proven_at == held.proven_at
        assert world.lease().state is LeaseState.RUNNING

    play(story, seed=seed, workloads=(work(),))
