"""What an order would do, as a person is shown it before it is given."""

import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.act.orders import order_preview
from agent.act.orders.order_error import OrderError
from agent.act.orders.order_grounds import Grounds
from agent.clock import SteppedClock
from agent.domain.record.intent import Intent, IntentState
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.order import Order
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from agent.ledger.store import Ledger
from tests.support import builders

NOW = builders.NOW
RUNS = builders.lease(1)
STOPPED = builders.lease(2, slot=builders.slot("train", 1), state=LeaseState.PAUSED)


async def grounds(directory: Path, *leases: Lease, rents: tuple[Intent, ...] = ()) -> Grounds:
    """Return grounds on a ledger that holds these leases and open rents."""
    ledger = await Ledger.open(directory / "ledger.sqlite", clock=SteppedClock(NOW), fleet_id=builders.FLEET_ID)
    try:
        async with ledger.transaction() as tx:
            for each in leases:
                tx.open_lease(each)
            for rent in rents:
                tx.record_intent(rent)
        return Grounds((builders.workload(slots=2),), ("vast",), ledger.recollection(NOW), NOW)
    finally:
        await ledger.close()


def actions(shown: dict[str, Any]) -> dict[str, str]:
    return {row["lease"]: row["action"] for row in shown["leases"]}


async def test_the_end_of_a_kill_ends_no_lease(tmp_path: Path) -> None:
    shown = order_preview.shown(Order("resume", "fleet:all"), await grounds(tmp_path, RUNS, STOPPED))
    assert shown["sentence"].startswith("end the kill: the daemon may rent again")
    assert actions(shown) == {"vast-1": "goes on", "vast-2": "goes on"}
    assert all(row["after_dollars_per_hour"] == row["dollars_per_hour"] for row in shown["leases"])


async def test_a_kill_of_everything_releases_what_bills(tmp_path: Path) -> None:
    shown = order_preview.shown(Order("kill", "fleet:all"), await grounds(tmp_path, RUNS, STOPPED))
    assert shown["sentence"].startswith("release every lease")
    assert actions(shown) == {"vast-1": "release", "vast-2": "release"}
    assert all(row["after_dollars_per_hour"] == 0 for row in shown["leases"])


GOING = msgspec.structs.replace(RUNS, state=LeaseState.RELEASING)


@pytest.mark.parametrize("order", [Order("drain", "train"), Order("pause", "train"), Order("kill", "fleet:all")])
async def test_a_lease_that_is_being_released_does_not_go_on(tmp_path: Path, order: Order) -> None:
    shown = order_preview.shown(order, await grounds(tmp_path, GOING, STOPPED))
    assert actions(shown)["vast-1"] == "is being released"
    assert [row["after_dollars_per_hour"] for row in shown["leases"] if row["lease"] == "vast-1"] == [0]


@pytest.mark.parametrize(
    ("target", "count"),
    [("train", 2), ("train/0", 1), ("host:h9", 1), ("host:h7", 0), ("market:vast", 2), ("serve", 0), ("vast-1", 1)],
)
async def test_only_doubts_about_the_target_are_counted(tmp_path: Path, target: str, count: int) -> None:
    rents = tuple(
        builders.intent(
            number + 5, slot=builders.slot("train", number), host_id=f"h{number + 8}", state=IntentState.RECORDED
        )
        for number in (0, 1)
    )
    known = await grounds(tmp_path, RUNS, rents=rents)
    known = dataclasses.replace(known, workloads=(*known.workloads, builders.workload("serve")))
    assert order_preview.shown(Order("lock", target), known)["in_doubt"] == count
    assert order_preview.shown(Order("kill", "fleet:all"), known)["in_doubt"] == 2


@pytest.mark.parametrize("verb", ["drain", "pause", "release", "kill"])
async def test_an_order_for_other_leases_than_were_shown_is_refused(tmp_path: Path, verb: str) -> None:
    known = await grounds(tmp_path, RUNS, STOPPED)
    order_preview.refuse_changed(Order(verb, "train", leases=("vast-2", "vast-1")), known)
    order_preview.refuse_changed(Order(verb, "train"), known)
    with pytest.raises(OrderError) as new:
        order_preview.refuse_changed(Order(verb, "train", leases=("vast-1",)), known)
    assert new.value.code == "leases_changed"
    said = "the leases changed since they were shown: train/1 has vast-2 now; nothing was done"
    assert new.value.sentence == said
    with pytest.raises(OrderError, match="vast-3 is gone or being released"):
        order_preview.refuse_changed(Order(verb, "train", leases=("vast-1", "vast-2", "vast-3")), known)


async def test_a_lease_whose_release_is_under_way_changes_nothing(tmp_path: Path) -> None:
    known = await grounds(tmp_path, GOING, STOPPED)
    order_preview.refuse_changed(Order("pause", "train", leases=("vast-2",)), known)
    with pytest.raises(OrderError, match="vast-1 is gone or being released"):
        order_preview.refuse_changed(Order("pause", "train", leases=("vast-1", "vast-2")), known)


async def test_a_kill_of_everything_acts_whatever_was_shown(tmp_path: Path) -> None:
    known = await grounds(tmp_path, RUNS, STOPPED)
    order_preview.refuse_changed(Order("kill", "fleet:all", leases=()), known)
    with pytest.raises(OrderError, match="train/0 has vast-1 now, train/1 has vast-2 now"):
        order_preview.refuse_changed(Order("kill", "train", leases=()), known)


CLOUD = builders.lease(7, market="dstack", lease_id="dstack-7", slot=builders.slot("train", 1))


PAUSE, KILL = Order("pause", "train"), Order("kill", "fleet:all", keep_disks=True)


@pytest.mark.parametrize(
    ("order", "place", "becomes"),
    [
        (PAUSE, CheckpointPlace.REMOTE, "release"),
        (PAUSE, CheckpointPlace.DISK, "goes on"),
        (KILL, CheckpointPlace.REMOTE, "release"),
        (KILL, CheckpointPlace.DISK, "release"),
    ],
)
async def test_a_pause_is_shown_as_what_it_comes_to(
    tmp_path: Path, order: Order, place: CheckpointPlace, becomes: str
) -> None:
    known = await grounds(tmp_path, RUNS, CLOUD)
    works = (builders.workload(slots=2, checkpoint=Checkpoint(place=place)),)
    shown = order_preview.shown(order, dataclasses.replace(known, workloads=works))
    assert actions(shown) == {"vast-1": "pause", "dstack-7": becomes}


ARRIVED = builders.lease(3, slot=GOING.slot)


async def test_nothing_of_it_is_left_is_said_of_what_leaves(tmp_path: Path) -> None:
    shown = order_preview.shown(Order("release", "train/0", is_gone=True), await grounds(tmp_path, GOING, ARRIVED))
    assert actions(shown) == {"vast-1": "is being released", "vast-3": "goes on"}


async def test_a_slot_that_runs_is_not_gone_and_a_lease_is_gone_by_its_name(tmp_path: Path) -> None:
    known = await grounds(tmp_path, ARRIVED)
    with pytest.raises(OrderError, match="`gpubid release LEASE --gone`"):
        order_preview.shown(Order("release", "train/0", is_gone=True), known)
    assert actions(order_preview.shown(Order("release", "vast-3", is_gone=True), known)) == {"vast-3": "release"}
