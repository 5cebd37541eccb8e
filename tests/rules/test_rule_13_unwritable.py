"""Rule 13: when the ledger cannot be written nothing is paid for; release and pause go on unjournaled and say so.

The engine itself refuses: SQLite's connection is set to read only, as a full or failed disk would leave it; on a server
each write fails as on its full disk.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.limits.limits import Limits
from agent.decide.strategy import Params, Proposal, Tuned, View
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from agent.domain.work.decision import Reason
from agent.domain.work.order import Order
from agent.domain.work.workload import WorkloadKind
from agent.ledger.ledger_errors import LedgerError
from strategies.patient import Patient, PatientParams
from tests.support import full_disk, spending
from tests.support.losses import seeds
from tests.support.world import Rehearsed, play, work


async def cycles(world: Rehearsed, minutes: float) -> list[str]:
    """Run cycles as the daemon does, over refusals of the ledger; return the codes of those."""
    codes = []
    until = world.clock.monotonic() + minutes * 60
    while world.clock.monotonic() < until:
        try:
            await world.app.cycle()
        except LedgerError as error:
            codes.append(error.code.value)
        world.clock.advance(world.config.poll.total_seconds())
        world.market.advance_to(world.clock.time())
    return codes


async def recovers(world: Rehearsed, slots: int) -> None:
    """Insist that all is in order again once the ledger can be written, spend included."""
    await full_disk.let_write(world, may=True)
    await cycles(world, 90)
    assert len([lease for lease in world.leases() if lease.state is LeaseState.RUNNING]) == slots
    assert {lease.instance_id for lease in world.leases()} == {str(each.contract_id) for each in world.live()}
    world.market.charged_total()  # brings every contract up to now
    charged = sum(sum(each.charged.values()) for each in world.contracts())
    assert abs(await world.spend() - charged) <= max(0.02, 0.01 * charged)


@given(seed=seeds, slots=st.integers(1, 2), is_first=st.booleans(), loss=st.sampled_from([None, 1.3, 6.0]))
def test_nothing_is_paid_for(seed: int, slots: int, is_first: bool, loss: float | None) -> None:
    async def story(world: Rehearsed) -> None:
        world.is_checked = False
        if not is_first:
            await world.until_running()
            await cycles(world, 20)
        await full_disk.let_write(world, may=False)
        orders = len(world.orders)
        for contract in world.live():
            if loss is not None and contract.bid is not None:
                world.rival(contract.slice.machine_id, bid=contract.bid * loss)
        assert "unwritable" in await cycles(world, 15)
        assert not [order for order in world.orders[orders:] if order.kind.is_paying]
        await recovers(world, slots)

    play(story, seed=seed, workloads=(work(slots=slots),))


@given(seed=seeds, verb=st.sampled_from(["kill", "kill --keep-disks", "release", "pause"]))
def test_a_person_is_obeyed_and_told(seed: int, verb: str) -> None:
    async def story(world: Rehearsed) -> None:
        world.is_checked = False
        await world.until_running()
        await full_disk.let_write(world, may=False)
        doing: Any
        if verb.startswith("kill"):
            doing = spending.kill(world.app, keep_disks=verb != "kill")
        else:
            doing = world.app.say(Order(verb, "train"), "a test")
        with pytest.raises(LedgerError, match="sent to the market but not written down"):
            await doing
        assert not [contract for contract in world.live() if contract.holds_gpu]
        paid = [order for order in world.orders if order.kind.is_paying]
        if verb == "kill":
            await full_disk.let_write(world, may=True)
            await cycles(world, 10)
            assert [order for order in world.orders if order.kind.is_paying] == paid, "rented again under a kill"

    play(story, seed=seed)


@pytest.mark.only_sqlite
@given(seed=seeds, verb=st.sampled_from(["kill", "done", "pause"]))
def test_what_a_person_ends_on_a_full_disk_stays_ended(seed: int, verb: str) -> None:
    """The first commit fails and frees the ballast: the hold must be written after that."""

    async def story(world: Rehearsed) -> None:
        world.is_checked = False
        await world.until_running()
        full_disk.fill(world)
        await world.app.say(Order(verb, "train"), "a test")
        assert [str(held.target) for held in world.app.ledger.recollection().holds] == ["workload:train"]
        orders = len(world.orders)
        await cycles(world, 30)
        assert not [order for order in world.orders[orders:] if order.kind.is_paying], "rented again"
        assert not [contract for contract in world.live() if contract.holds_gpu]

    play(story, seed=seed, workloads=(work(kind=WorkloadKind.BATCH),))


@given(seed=seeds)
def test_a_spent_budget_is_kept_all_the_same(seed: int) -> None:
    async def story(world: Rehearsed) -> None:
        world.is_checked = False
        await world.until_running()
        await full_disk.let_write(world, may=False)
        spent = world.app.ledger.recollection(world.clock.now()).total.today
        world.app.rules = dataclasses.replace(world.app.rules, caps=Limits(per_day=spent))
        await cycles(world, 5)
        assert not [contract for contract in world.live() if contract.holds_gpu]
        assert {order.kind for order in world.orders} <= {IntentKind.RENT, IntentKind.PAUSE, IntentKind.RELEASE}

    play(story, seed=seed)


class Quits:
    """Rents as patient does, and gives up its leases on demand of the test."""

    params: ClassVar[type[Params]] = PatientParams
    is_over = False

    def propose(self, view: View, params: Any) -> Sequence[Proposal]:
        if not self.is_over:
            return Patient().propose(view, params)
        why = Reason("quits", "it is not worth its price")
        return [Proposal(each.slot, IntentKind.RELEASE, why, lease=each.lease) for each in view.slots]


@given(seed=seeds)
def test_what_a_strategy_would_give_up_is_kept(seed: int) -> None:
    """It could not be rented again: only necessary endings go on."""
    quits = Quits()

    async def story(world: Rehearsed) -> None:
        world.is_checked = False
        await world.until_running()
        known = len(world.orders)  # a first start may have been ended: it loaded too long
        quits.is_over = True
        await full_disk.let_write(world, may=False)
        assert "unwritable" in await cycles(world, 5)
        assert not world.orders[known:]
        await full_disk.let_write(world, may=True)
        await cycles(world, 1)
        assert world.orders[-1].kind is IntentKind.RELEASE

    play(story, seed=seed, tuned={"patient": Tuned("patient", quits, PatientParams(), "q")})


def test_whoever_kills_on_a_full_disk_with_nothing_to_end_is_told_that_it_may_be_forgotten() -> None:
    async def story(world: Rehearsed) -> None:
        world.is_checked = False
        await full_disk.let_write(world, may=False)
        with pytest.raises(LedgerError, match="not written down, and a restart forgets it"):
            await spending.kill(world.app)
        await full_disk.let_write(world, may=True)
        orders = len(world.orders)
        await cycles(world, 5)
        assert not [order for order in world.orders[orders:] if order.kind.is_paying]

    play(story, seed=1, workloads=(work(slots=1),))


@given(seed=seeds, keep=st.booleans(), minutes=st.sampled_from([0, 2, 30]))
def test_a_kill_holds_unwritten_and_is_written_down_later(seed: int, minutes: int, *, keep: bool) -> None:
    async def story(world: Rehearsed) -> None:
        world.is_checked = False
        await world.until_running()
        await full_disk.let_write(world, may=False)
        with pytest.raises(LedgerError, match="not written down"):
            await spending.kill(world.app, keep_disks=keep)
        await cycles(world, 5)
        await full_disk.let_write(world, may=True)
        orders = len(world.orders)
        await cycles(world, minutes)
        assert len(await world.events("operator.halted")) == (1 if minutes else 0)
        assert not [order for order in world.orders[orders:] if order.kind.is_paying]
        assert not any(contract.holds_gpu for contract in world.live())
        # The first who writes reads the ledger anew; a cooldown that ended meanwhile refuses no order.
        await spending.lift(world.app)
        await cycles(world, 90)
        assert [lease.state for lease in world.leases()] == [LeaseState.RUNNING]

    play(story, seed=seed, workloads=(work(slots=1),))


@pytest.mark.parametrize("verb", ["pause", "release"])
def test_what_left_without_the_ledger_is_not_taken_for_a_loss(verb: str) -> None:
    """A batch was held for a person, and a host blamed, for what the daemon did itself."""

    async def story(world: Rehearsed) -> None:
        world.is_checked = False
        held = await world.until_running()
        await full_disk.let_write(world, may=False)
        with pytest.raises(LedgerError, match="sent to the market but not written down"):
            await world.app.say(Order(verb, "train/0"), "a test")
        await full_disk.let_write(world, may=True)
        await cycles(world, 3)
        kinds = {event.kind for event in await world.events() if event.lease_id == held.lease_id}
        assert not kinds & {"lease.interrupted", "lease.gone", "workload.held"}
        after = next(each for each in await world.past_leases() if each.lease_id == held.lease_id)
        if verb == "release":
            assert (after.state, after.end_reason) == (LeaseState.ENDED, "ordered")
        (order,) = [each for each in await world.intents(IntentKind(verb)) if each.lease_id == held.lease_id]
        assert order.state.value in {"confirmed", "void"}
        assert order.sent_at is not None

    play(story, seed=4, workloads=(work(kind=WorkloadKind.BATCH),))
