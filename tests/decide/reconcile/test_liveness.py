"""The verdict on a service that was ready, from the probes of it."""

import datetime as dt
from dataclasses import replace

import msgspec
import pytest

from agent.decide.facts import LeaseChanged
from agent.decide.reconcile import workload_end
from agent.decide.reconcile.probes import liveness
from agent.domain.fleet import Fleet, MarketView
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease
from agent.domain.record.tally import Counted, Tally
from agent.domain.slot import Slot
from agent.domain.work.ready_sign import Liveness, Readiness, ReadySign, Sighting
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload
from agent.markets.dstack.rules import RULES as DSTACK
from tests.support import builders
from tests.support.builders import NOW

EVERY = dt.timedelta(seconds=30)
LIVE = Liveness(EVERY, dt.timedelta(seconds=5), 3)
READY = Readiness(ReadySign.PORT, port=8000, live=LIVE)


def ago(**span: float) -> dt.datetime:
    return NOW - dt.timedelta(**span)


def serving(place: CheckpointPlace = CheckpointPlace.NONE) -> Workload:
    return builders.workload(ready=READY, ports=(8000,), slots=2, checkpoint=Checkpoint(place=place))


def served(**changes: object) -> Lease:
    start = ago(hours=2)
    known = builders.lease(run_since=start, ready_since=ago(hours=1), was_ready=True, has_run=True)
    return msgspec.structs.replace(known, **changes)


def ill(**changes: object) -> Lease:
    told = "unhealthy: port 8000 does not answer"
    return served(**{"ready_since": None, "unhealthy_since": NOW, "failed_probes": 3, "end_reason": told} | changes)


def judged(
    lease: Lease, sighting: Sighting | None, *others: Lease, work: Workload | None = None
) -> tuple[Lease, EventKind | None]:
    work = work or serving()
    seen = {} if sighting is None else {lease.instance_id: sighting}
    view = MarketView("vast", is_fresh=True, listed_at=NOW, sightings=seen)
    fleet: Fleet = builders.fleet(leases=(lease, *others), workloads=(work,), markets={"vast": view})
    return liveness.judged(fleet, view, work, lease)


def probe(lease: Lease, at: dt.datetime = NOW, *, is_ready: bool = False) -> Sighting:
    return Sighting(lease.instance_id, at, is_ready, said="" if is_ready else "port 8000 does not answer")


def well() -> Lease:
    return msgspec.structs.replace(served(), lease_id="other", instance_id="77", slot=Slot(served().slot.workload, 1))


def test_each_failed_probe_counts_once_and_only_in_a_row() -> None:
    first, kind = judged(served(), probe(served()))
    assert (first.failed_probes, first.probe_failed_at, kind) == (1, NOW, None)
    assert judged(first, probe(first))[0] == first, "the same probe counted twice"
    answered, kind = judged(first, probe(first, NOW + EVERY, is_ready=True))
    assert (answered, kind) == (served(), None)


def test_a_probe_from_before_it_was_ready_says_nothing() -> None:
    assert judged(served(), probe(served(), ago(minutes=90))) == (served(), None)


def test_a_service_that_could_not_be_asked_is_unknown() -> None:
    unasked = replace(probe(served()), was_asked=False)
    assert judged(served(failed_probes=2), unasked) == (served(failed_probes=2), None)


def test_the_last_of_them_makes_it_unhealthy_and_its_restart_due() -> None:
    before = served(failed_probes=2, probe_failed_at=ago(minutes=1))
    after, kind = judged(before, probe(before), well())
    assert kind is EventKind.LEASE_UNHEALTHY
    assert (after.ready_since, after.unhealthy_since, after.restarts, after.restart_at) == (None, NOW, 1, NOW)
    assert liveness.is_stop_due(after)
    assert after.end_reason == "unhealthy: port 8000 does not answer"


def test_alone_it_is_not_restarted_before_our_own_network_is_ruled_out() -> None:
    assert judged(ill(), None)[0].restarts == 0
    silent = msgspec.structs.replace(well(), failed_probes=1)
    assert judged(ill(), None, silent)[0].restarts == 0, "another that does not answer either proves nothing"
    assert judged(ill(unhealthy_since=NOW - liveness.ALONE), None)[0].restarts == 1


@pytest.mark.parametrize(("restarts", "minutes"), [(1, 5), (2, 10), (3, 20), (5, 60), (40, 60)])
def test_each_restart_waits_twice_as_long_up_to_an_hour(restarts: int, minutes: int) -> None:
    kept = serving(CheckpointPlace.DISK)
    soon = ill(restarts=restarts, unhealthy_since=ago(minutes=minutes, seconds=-1))
    due = ill(restarts=restarts, unhealthy_since=ago(minutes=minutes))
    assert judged(soon, None, well(), work=kept)[0].restarts == restarts
    assert judged(due, None, well(), work=kept)[0].restarts == restarts + 1


def test_after_two_restarts_another_host_is_tried_and_this_one_blamed_only_beside_healthy_ones() -> None:
    spent = ill(restarts=2, unhealthy_since=ago(hours=1))
    alone, kind = judged(spent, None)
    assert (alone.has_failed, kind) == (True, EventKind.LEASE_UNHEALTHY)
    assert alone.end_reason == "unhealthy: its service does not answer after 2 restarts; port 8000 does not answer"
    beside, _ = judged(spent, None, well())
    assert beside.has_failed
    assert beside.end_reason.startswith("unhealthy_host: ")


def test_a_disk_with_the_only_copy_is_never_given_up_for_it() -> None:
    spent = ill(restarts=2, unhealthy_since=ago(hours=1))
    after, _ = judged(spent, None, well(), work=serving(CheckpointPlace.DISK))
    assert not after.has_failed
    assert after.restarts == 3


def test_a_long_health_forgives_earlier_restarts() -> None:
    before = served(restarts=2, ready_since=ago(hours=7), run_since=ago(hours=8), failed_probes=2)
    after, _ = judged(before, probe(before), well())
    assert after.restarts == 1
    young = served(restarts=1, failed_probes=2)
    assert judged(young, probe(young), well())[0].restarts == 1, "its back-off has not begun"


def test_an_answer_ends_it_and_a_due_restart() -> None:
    before = ill(restarts=1, restart_at=NOW, probe_failed_at=ago(minutes=1))
    assert liveness.is_stop_due(before)
    after, kind = judged(before, probe(before, is_ready=True))
    assert (after.ready_since, after.unhealthy_since, after.end_reason) == (NOW, None, "")
    assert kind is EventKind.LEASE_READY
    assert not liveness.is_stop_due(after)


def test_what_is_probed_no_more_counts_as_useful_again() -> None:
    fleet: Fleet = builders.fleet(leases=(ill(),), workloads=(serving(),))
    after = liveness.unwatched(fleet, ill())
    assert (after.ready_since, after.unhealthy_since, after.failed_probes) == (fleet.now, None, 0)


# --- a market that cannot pause ---------------------------------------------------------------------------------------
def on_dstack(lease: Lease, *others: Lease, place: CheckpointPlace = CheckpointPlace.NONE) -> Fleet:
    mine = tuple(msgspec.structs.replace(each, market="dstack") for each in (lease, *others))
    view = builders.view(market="dstack", rules=DSTACK, instances=())
    return builders.fleet(leases=mine, workloads=(serving(place),), markets={"dstack": view})


def judged_on(fleet: Fleet) -> tuple[Lease, EventKind | None]:
    return liveness.judged(fleet, fleet.markets["dstack"], fleet.workloads[0], fleet.leases[0])


def test_what_cannot_be_restarted_in_place_is_given_up_and_counted() -> None:
    after, kind = judged_on(on_dstack(ill(unhealthy_since=ago(hours=1))))
    assert (after.has_failed, after.restarts, after.restart_at, kind) == (True, 0, None, EventKind.LEASE_UNHEALTHY)
    said = "unhealthy: its service does not answer and dstack cannot restart it in place; port 8000 does not answer"
    assert after.end_reason == said
    fleet = on_dstack(ill(unhealthy_since=ago(hours=1)))
    change = LeaseChanged(fleet.leases[0], after, kind)
    (mark,) = workload_end.marks(fleet, [change])
    assert isinstance(mark.record, Tally)
    assert mark.record.counted is Counted.FAILED_START, "enough of them hold the workload"


def test_it_is_not_given_up_before_our_own_network_is_ruled_out() -> None:
    assert not judged_on(on_dstack(ill()))[0].has_failed


def test_a_disk_with_the_only_copy_is_told_at_once_where_nothing_can_be_restarted() -> None:
    fleet = on_dstack(ill(unhealthy_since=ago(hours=1)), place=CheckpointPlace.DISK)
    after, kind = judged_on(fleet)
    assert (after, kind) == (fleet.leases[0], None)
    [alert] = liveness.alerts(fleet)
    assert f"does not answer since {ago(hours=1):%H:%M} UTC, and dstack cannot restart it; its disk" in alert.sentence
    [_] = liveness.alerts(on_dstack(ill(restarts=2), place=CheckpointPlace.DISK))
    assert not list(liveness.alerts(on_dstack(ill())))
