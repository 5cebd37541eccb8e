"""A person's order, read against what there is."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from agent.act.orders import operator_orders
from agent.act.orders.order_error import OrderError
from agent.act.orders.order_grounds import Grounds
from agent.decide.operators import guard_runs, operator_holds
from agent.domain.record import hold
from agent.domain.record.event_kind import EventKind
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.record.tally import Counted, Tally
from agent.domain.work.deadline import Deadline, Progress
from agent.domain.work.decision import Pause, Release
from agent.domain.work.order import Order
from agent.domain.work.workload import WorkloadKind
from tests.act.conftest import Desk
from tests.act.read_orders import RUNS, STRANDED, lifted, read
from tests.support import builders
from tests.support.expiring import rest

NOW = builders.NOW
LATER = NOW + timedelta(days=1)


async def refused(desk: Desk, order: Order, *rests: ExpiringRecord, **changes: Any) -> str:
    with pytest.raises(OrderError) as caught:
        await read(desk, order, *rests, **changes)
    assert caught.value.sentence == str(caught.value)
    return caught.value.code


async def test_progress_is_written_down_and_less_of_it_is_an_event(desk: Desk) -> None:
    deadline = Deadline(48.0, NOW + timedelta(days=3))
    works = (builders.workload(deadline=deadline),)
    for hours in (12.0, 7.5):
        order = Order("progress", "train", hours=hours)
        grounds = Grounds(works, ("vast",), desk.ledger.recollection(NOW), NOW)
        meant = operator_orders.read(order, "ops", grounds)
        async with desk.ledger.transaction() as tx:
            meant.write(tx, order, "ops", NOW)
    assert desk.ledger.recollection(NOW).progress["train"].hours == 7.5
    kinds = [event.kind for event in await (await desk.ledger.reader()).events()]
    assert kinds.count(EventKind.PROGRESS_WENT_BACK) == 1


@pytest.mark.parametrize(("target", "hours"), [("train", float("nan")), ("train", None), ("serve", 1.0)])
async def test_progress_of_nothing_or_no_number_is_refused(desk: Desk, target: str, hours: float | None) -> None:
    works = (builders.workload(deadline=Deadline(48.0, NOW)), builders.workload("serve"))
    code = await refused(desk, Order("progress", target, hours=hours), workloads=works)
    assert code == ("no_deadline" if target == "serve" else "bad_hours")


@pytest.mark.parametrize(
    ("target", "key"),
    [
        ("train", "workload:train"),
        ("train/0", "slot:train/0"),
        ("vast-1", "lease:vast-1"),
        ("1", "lease:vast-1"),
        ("host:h1", "host:vast/h1"),
        ("host:vast/h1", "host:vast/h1"),
        ("owner:o1", "owner:vast/o1"),
        ("owner:vast/o1", "owner:vast/o1"),
        ("market:vast", "market:vast"),
    ],
)
async def test_a_target_is_meant_by_any_of_its_names(desk: Desk, target: str, key: str) -> None:
    meant = await read(desk, Order("release", target))
    assert str(meant.target) == key
    assert [(type(order), order.lease.lease_id) for order in meant.decisions] == [(Release, "vast-1")]


@pytest.mark.parametrize("word", [word for word in Word if word is not Word.DONE])
@pytest.mark.parametrize("target", ["workload:train", "slot:train/0", "host:vast/h1", "owner:vast/o1", "market:vast"])
async def test_the_way_out_that_is_shown_lifts_the_hold(desk: Desk, word: Word, target: str) -> None:
    about = hold.Target.parse(target)
    assert about is not None
    given = hold.OperatorHold(word, about, NOW, "me")
    _, verb, name = operator_holds.way_out(word, about).split(" ")
    assert given.place in lifted(await read(desk, Order(verb, name), given))


ELSEWHERE = msgspec.structs.replace(STRANDED, market="runpod", host_id="h1", owner_id="o1")
"""Holds what another market calls by the same ids."""


@pytest.mark.parametrize("target", ["host:h1", "owner:o1"])
async def test_an_id_that_two_markets_have_is_refused_without_its_market(desk: Desk, target: str) -> None:
    assert await refused(desk, Order("lock", target), leases=(RUNS, ELSEWHERE)) == "ambiguous_place"


@pytest.mark.parametrize("target", ["host:vest/h1", "owner:vest/o1", "market:vest"])
async def test_a_market_that_does_not_exist_is_no_part_of_an_id(desk: Desk, target: str) -> None:
    """With one market, `host:vest/h1` paused a host `vest/h1` of it, and nobody was told that nothing is there."""
    with pytest.raises(OrderError, match="no market is named 'vest'; markets: ") as caught:
        await read(desk, Order("pause", target))
    assert caught.value.code in {"ambiguous_place", "unknown_target"}


async def test_an_ended_lease_is_not_taken_for_the_one_after_it(desk: Desk) -> None:
    near = msgspec.structs.replace(RUNS, lease_id="vast-1796072713971")
    with pytest.raises(OrderError, match="no workload, slot or lease is named") as caught:
        await read(desk, Order("release", "vast-1796072713940"), leases=(near,))
    assert "did you mean" not in caught.value.sentence


async def test_a_host_is_meant_on_its_own_market_alone(desk: Desk) -> None:
    meant = await read(desk, Order("release", "host:runpod/h1"), leases=(RUNS, ELSEWHERE))
    assert str(meant.target) == "host:runpod/h1"
    assert [order.lease.lease_id for order in meant.decisions] == [ELSEWHERE.lease_id]


async def test_an_unlock_lifts_the_lock_of_one_market_alone(desk: Desk) -> None:
    locked = (rest(Word.LOCK, "host:vast/h1"), rest(Word.LOCK, "host:runpod/h1"))
    meant = await read(desk, Order("unlock", "host:vast/h1"), *locked)
    assert lifted(meant) == ((Word.LOCK, "host:vast/h1"),)


async def test_what_is_released_is_all_that_is_open_of_it(desk: Desk) -> None:
    meant = await read(desk, Order("release", "train"), leases=(RUNS, STRANDED))
    assert {order.lease.lease_id for order in meant.decisions} == {"vast-1", "vast-2"}


@pytest.mark.parametrize(
    ("order", "code"),
    [
        (Order("explode", "train"), "unknown_verb"),
        (Order("release", "train/1"), "no_lease"),
        (Order("release", "market:elsewhere"), "unknown_target"),
        (Order("pause", "nobody"), "unknown_target"),
        (Order("done", "host:h1"), "bad_target"),
        (Order("resume", "train"), "nothing_holds"),
        (Order("unlock", "host:h1"), "nothing_locked"),
        (Order("adopt", "vast-1"), "not_held"),
    ],
    ids=str,
)
async def test_what_does_not_go_together_is_refused_by_name(desk: Desk, order: Order, code: str) -> None:
    assert await refused(desk, order) == code


async def test_a_service_is_never_done(desk: Desk) -> None:
    assert await refused(desk, Order("done", "train"), workloads=(builders.workload(),)) == "service"


async def test_a_pause_stands_and_stops_what_runs(desk: Desk) -> None:
    meant = await read(desk, Order("pause", "train", span=timedelta(hours=2)))
    (added,) = meant.adds
    assert (*added.place, added.until, added.ground) == (
        Word.PAUSE,
        "workload:train",
        NOW + timedelta(hours=2),
        "ops",
    )
    assert [type(order) for order in meant.decisions] == [Pause]
    assert "until 2026-11-20 14:00 UTC" in meant.sentence


async def test_what_is_down_or_leaving_is_not_paused_again(desk: Desk) -> None:
    down = builders.lease(3, state=LeaseState.PAUSED, paused_by_us=True)
    leaving = builders.lease(4, state=LeaseState.RELEASING)
    meant = await read(desk, Order("pause", "train"), leases=(down, leaving))
    assert meant.decisions == ()


@pytest.mark.parametrize("verb", ["drain", "lock"])
async def test_drain_and_lock_stop_nothing_that_runs(desk: Desk, verb: str) -> None:
    meant = await read(desk, Order(verb, "vast-1"))
    assert meant.decisions == ()
    assert [added.place for added in meant.adds] == [(verb, "slot:train/0")]


async def test_done_releases_and_stands_for_good(desk: Desk) -> None:
    meant = await read(desk, Order("done", "train/0"))
    assert [type(order) for order in meant.decisions] == [Release]
    assert (meant.adds[0].since, meant.adds[0].until) == (NOW, None)


@pytest.mark.parametrize("target", ["train", "train/0", "vast-1", "host:h1", "owner:o1", "market:vast"])
async def test_a_kill_releases_whatever_it_names_and_stands(desk: Desk, target: str) -> None:
    meant = await read(desk, Order("kill", target))
    assert [(type(order), order.lease) for order in meant.decisions] == [(Release, RUNS)]
    (kill,) = meant.adds
    assert isinstance(kill, OperatorHold)
    assert (kill.word, kill.since, kill.until) == ("kill", NOW, None)
    after = await read(desk, Order("resume", target), rest("kill", str(meant.target)), leases=())
    assert lifted(after) == (("kill", str(meant.target)),)


async def test_what_is_only_counted_is_no_rest_to_choose_from(desk: Desk) -> None:
    with pytest.raises(OrderError) as caught:
        await read(desk, Order("unlock", "host:h9"), rest("ran", "train/0@vast-1"), rest("lock", "host:vast/h1"))
    assert "holds and cooldowns: lock:host:vast/h1" in caught.value.sentence


async def test_a_resume_under_a_stop_of_all_spending_says_that_it_is_not_enough(desk: Desk) -> None:
    meant = await read(desk, Order("resume", "train"), rest(Word.PAUSE, "workload:train"), rest("fleet", "all"))
    assert lifted(meant) == ((Word.PAUSE, "workload:train"),)
    assert "`gpubid kill --lift` ends that" in meant.sentence


async def test_done_ends_a_hold_and_nothing_else(desk: Desk) -> None:
    rests = [
        rest(Word.HELD, "slot:train/0"),
        rest(Word.HELD, "slot:train/1"),
        rest(Word.LOCK, "slot:train/0"),
    ]
    assert lifted(await read(desk, Order("done", "train/0"), *rests)) == ((Word.HELD, "slot:train/0"),)
    assert set(lifted(await read(desk, Order("done", "train"), leases=()))) == {
        (Word.HELD, "slot:train/0"),
        (Word.HELD, "slot:train/1"),
    }


@pytest.mark.parametrize(
    ("target", "held"),
    [
        ("host:h1", rest(Word.LOCK, "host:vast/h1")),
        ("train", rest(Word.LOCK, "workload:train")),
        ("host:h1", rest("host", "vast/h1")),
        ("train/0", rest("slot", "train/0")),
        ("vast-1", rest(Word.LOCK, "slot:train/0")),
    ],
    ids=str,
)
async def test_unlock_lifts_what_is_shown_under_that_name(desk: Desk, target: str, held: ExpiringRecord) -> None:
    meant = await read(desk, Order("unlock", target), held)
    assert lifted(meant) == (held.place,)


async def test_unlock_never_lifts_a_pause_or_a_kill(desk: Desk) -> None:
    rests = [rest(Word.PAUSE, "workload:train"), rest("fleet", "all")]
    assert await refused(desk, Order("unlock", "train"), *rests) == "nothing_locked"


async def test_what_is_held_is_adopted_into_its_own_slot_or_another(desk: Desk) -> None:
    meant = await read(desk, Order("adopt", "vast-2"), leases=(STRANDED,))
    assert meant.adopted is not None
    assert (meant.adopted.is_held, str(meant.adopted.slot)) == (False, "train/1")
    other = operator_orders.read(
        Order("adopt", "vast-2", into="train/0"),
        "ops",
        Grounds((builders.workload(slots=2),), ("vast",), desk.ledger.recollection(NOW), NOW),
    )
    assert other.adopted is not None
    assert str(other.adopted.slot) == "train/0"


async def test_nothing_is_adopted_into_a_slot_that_is_filled_busy_or_unknown(desk: Desk) -> None:
    both = (RUNS, STRANDED)
    assert await refused(desk, Order("adopt", "vast-2", into="train/0"), leases=both) == "slot_filled"
    assert await refused(desk, Order("adopt", "vast-2", into="train/9"), leases=()) == "no_slot"
    doubt = builders.intent(
        9, kind=IntentKind.RENT, state=IntentState.RECORDED, slot=builders.slot("train", 1), sent_at=None
    )
    async with desk.ledger.transaction() as tx:
        tx.record_intent(doubt)
    assert await refused(desk, Order("adopt", "vast-2"), leases=()) == "slot_busy"


async def test_an_order_is_written_with_who_gave_it(desk: Desk) -> None:
    order = Order("adopt", "vast-2")
    meant = await read(desk, order, rest(Word.PAUSE, "workload:train"), leases=(STRANDED,))
    async with desk.ledger.transaction() as tx:
        meant.write(tx, order, "ops", desk.clock.now())
    assert desk.lease().is_held is False
    resumed = await read(desk, Order("resume", "train"), leases=())
    async with desk.ledger.transaction() as tx:
        resumed.write(tx, Order("resume", "train"), "ops", desk.clock.now())
    assert desk.expiring() == {}
    events = await (await desk.ledger.reader()).events()
    assert {(event.kind, event.slot, event.reason_code) for event in events} == {
        ("operator.ordered", 1, "adopt"),
        ("operator.ordered", None, "resume"),
    }
    assert all("(ops)" in event.reason for event in events)


async def begun(desk: Desk) -> None:
    works = (builders.guarded(slots=2),)
    async with desk.ledger.transaction() as tx:
        for run in guard_runs.due((), works, NOW):
            tx.begin_run(run)


async def test_a_retry_begins_the_runs_of_its_target_and_ends_what_holds_them(desk: Desk) -> None:
    await begun(desk)
    works = (builders.guarded(slots=2, kind=WorkloadKind.BATCH),)
    done = hold.OperatorHold(Word.DONE, hold.of_workload("train"), NOW, "ops")
    meant = await read(desk, Order("retry", "train"), done, leases=(), workloads=works)
    assert lifted(meant) == (done.place,)
    assert meant.sentence == ("retry workload:train: train/0 begins run 2, train/1 begins run 2, without a checkpoint")
    async with desk.ledger.transaction() as tx:
        meant.write(tx, Order("retry", "train"), "ops", NOW)
    told = await (await desk.ledger.reader()).events(kinds=[EventKind.WORKLOAD_RUN_BEGUN])
    assert {event.slot for event in told} == {0, 1}
    assert len(told) == 2
    one = await read(desk, Order("retry", "train/1"), leases=(), workloads=works)
    assert [(str(run.slot), run.run) for run in one.runs] == [("train/1", 3)]
    assert one.lifts == ()
    mine, other = (Tally(Counted.FAILED_TASK, f"train/{at}", NOW, LATER, "code 3", "L1") for at in (1, 0))
    failed = await read(desk, Order("retry", "train/1"), mine, other, leases=(), workloads=works)
    assert lifted(failed) == (mine.place,), "the new run has all its retries, also where nothing held the slot"


async def test_a_retry_puts_the_progress_of_its_workload_back_to_nothing(desk: Desk) -> None:
    await begun(desk)
    done = Progress("train", 9.0, NOW - timedelta(hours=1), NOW - timedelta(days=1), "log", "vast-1")
    async with desk.ledger.transaction() as tx:
        tx.keep_progress(done)
    meant = await read(desk, Order("retry", "train/0"), leases=(), workloads=(builders.guarded(slots=2),))
    async with desk.ledger.transaction() as tx:
        meant.write(tx, Order("retry", "train/0"), "ops", NOW)
    known = desk.ledger.recollection(NOW).progress["train"]
    assert (known.hours, known.told_at, known.since, known.lease_id) == (0.0, NOW, done.since, "")


async def test_nothing_is_retried_while_a_rent_is_in_doubt(desk: Desk) -> None:
    """What comes of it works for the old run."""
    await begun(desk)
    doubt = builders.intent(9, kind=IntentKind.RENT, state=IntentState.RECORDED, slot=builders.slot(), sent_at=None)
    async with desk.ledger.transaction() as tx:
        tx.record_intent(doubt)
    works = (builders.guarded(slots=2),)
    assert await refused(desk, Order("retry", "train"), leases=(), workloads=works) == "slot_busy"
    assert (await read(desk, Order("retry", "train/1"), leases=(), workloads=works)).runs


async def test_nothing_is_retried_while_a_lease_still_does_it_or_where_no_guard_keeps_it(desk: Desk) -> None:
    assert await refused(desk, Order("retry", "train"), leases=()) == "no_run"
    await begun(desk)
    works = (builders.guarded(slots=2),)
    with pytest.raises(OrderError, match="first `gpubid drain train/0`, then `gpubid release train/0`") as filled:
        await read(desk, Order("retry", "train"), workloads=works)
    assert filled.value.code == "slot_filled"
    leaving = replace(RUNS, lease_id="vast-9", instance_id="9", state=LeaseState.RELEASING)
    async with desk.ledger.transaction() as tx:
        tx.update_lease(replace(RUNS, state=LeaseState.ENDED, ended_at=NOW))
    drained = OperatorHold(Word.DRAIN, hold.of_slot(RUNS.slot), NOW, "ops", None)
    meant = await read(desk, Order("retry", "train/0"), drained, leases=(leaving,), workloads=works)
    assert [run.run for run in meant.runs] == [2]
    assert meant.lifts == (drained,), "the drain that the refusal named ends with it"


async def test_no_lease_is_asked_to_go_for_a_retry_that_no_guard_allows(desk: Desk) -> None:
    assert await refused(desk, Order("retry", "train")) == "no_run"


async def test_a_lease_that_is_adopted_into_another_slot_has_no_run_there(desk: Desk) -> None:
    stranded = replace(STRANDED, guard_run=4)
    works = (builders.guarded(slots=3),)
    own = await read(desk, Order("adopt", "vast-2"), leases=(stranded,), workloads=works)
    other = await read(desk, Order("adopt", "vast-2", into="train/2"), leases=(), workloads=works)
    assert [meant.adopted.guard_run if meant.adopted else 0 for meant in (own, other)] == [4, None]


ORPHAN = msgspec.structs.replace(STRANDED, slot=RUNS.slot)
"""Carries the label of a slot that runs elsewhere."""
ARRIVES = builders.lease(3, slot=RUNS.slot)


@pytest.mark.parametrize(("one", "others"), [(ORPHAN, (RUNS,)), (ARRIVES, (RUNS,)), (RUNS, (ARRIVES,))])
async def test_the_kill_of_one_lease_of_several_ends_no_other(
    desk: Desk, one: Lease, others: tuple[Lease, ...]
) -> None:
    meant = await read(desk, Order("kill", one.lease_id), leases=(one, *others))
    assert [ending.lease for ending in meant.decisions] == [one]
    assert meant.adds == ()
    assert f"train/0 goes on with {others[0].lease_id}" in meant.sentence


async def test_one_lease_of_several_is_not_called_done(desk: Desk) -> None:
    assert await refused(desk, Order("done", "vast-2"), leases=(RUNS, ORPHAN)) == "one_of_several"


@pytest.mark.parametrize(
    "given", [(Word.DONE, "slot:train/1"), (Word.KILL, "workload:train"), (Word.KILL, "market:vast")]
)
async def test_nothing_is_adopted_that_would_be_released_at_once(desk: Desk, given: tuple[Word, str]) -> None:
    assert await refused(desk, Order("adopt", "vast-2"), rest(*given), leases=(STRANDED,)) == "slot_ends"


async def test_what_is_being_released_is_not_adopted(desk: Desk) -> None:
    leaving = msgspec.structs.replace(STRANDED, state=LeaseState.RELEASING)
    assert await refused(desk, Order("adopt", "vast-2"), leases=(leaving,)) == "not_held"
