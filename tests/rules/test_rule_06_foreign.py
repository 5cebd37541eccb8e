"""Rule 6: an instance is ours if it carries our fleet id or is in the ledger; foreign instances are never touched."""

from hypothesis import example, given
from hypothesis import strategies as st

from agent.domain.record.intent import IntentState
from agent.simulator.vast.model import EndCause
from tests.support.losses import seeds
from tests.support.world import FLEET, Rehearsed, play, work

OURS = f"gpubid:{FLEET}:train:0:0123456789abcdef"
near_ours = st.sampled_from(
    [
        OURS.upper(),
        OURS[:-1],
        OURS + "0",
        OURS.replace(FLEET, "0" * 12),
        OURS.replace(FLEET, FLEET[:-1]),
        OURS.replace("gpubid", "gpubid2"),
        OURS.replace(":train", ""),
        OURS.replace("train", "a b"),
        f"x{OURS}",
    ]
)
labels = st.one_of(st.none(), st.just(""), near_ours, st.text(max_size=80))


@given(seed=seeds, written=st.lists(labels, min_size=1, max_size=4), minutes=st.sampled_from([5, 40]))
@example(seed=1, written=[OURS + "x", OURS.upper(), OURS[:-1], None], minutes=40)
def test_foreign_instances_are_never_touched(seed: int, written: list[str | None], minutes: float) -> None:
    """The witness refuses every order about them; here they also outlive interruptions, moves and a restart."""

    async def story(world: Rehearsed) -> None:
        theirs = [(contract := world.foreign(label), contract.bid) for label in written]
        held = await world.until_running()
        assert held.host_id not in {str(contract.slice.machine_id) for contract, _ in theirs}, "rented beside them"
        await world.cycle(minutes)
        world.rival(int(held.host_id))
        await world.cycle(minutes)
        await world.restart()
        await world.cycle(minutes)
        for contract, bid in theirs:
            assert contract.end_cause is not EndCause.DESTROYED
            assert (contract.bid, contract.wants_gpu) == (bid, True)
        assert {lease.instance_id for lease in world.leases()} == {str(each.contract_id) for each in world.live()}
        assert not await world.events("orphan.seen")

    play(story, seed=seed)


@given(seed=seeds, label=st.sampled_from([None, ""]))
def test_an_unlabelled_one_on_the_host_of_a_rent_in_doubt_keeps_the_doubt_open(seed: int, label: str | None) -> None:
    """It may be the instance of that rent with its label lost.

    Nobody can know, so nothing is paid and a person is alerted.
    """

    async def story(world: Rehearsed) -> None:
        weather = world.weather("reset", when="after", route="PUT /asks")
        await world.cycle()
        world.simulator.weather.clear(weather)
        made = world.contract()
        world.is_checked = False  # it bills, and only its intent knows
        world.market.set_label(made.contract_id, label or "")
        await world.cycle(minutes=30)
        assert [intent.state for intent in world.open_intents()] == [IntentState.IN_DOUBT]
        assert len(world.orders) == 1
        assert made.ended is None
        assert [event.reason_code for event in await world.events("alert.unlabelled_instance")] == [
            "unlabelled_instance"
        ]
        world.market.set_label(made.contract_id, made_label(world))
        await world.until(lambda: not world.open_intents())
        assert world.lease().instance_id == str(made.contract_id)
        await world.until_running()

    def made_label(world: Rehearsed) -> str:
        return f"gpubid:{FLEET}:train:0:{world.open_intents()[0].intent_id}"

    play(story, seed=seed, workloads=(work(),))
