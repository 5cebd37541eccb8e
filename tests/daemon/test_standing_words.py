"""A person's order holds until it is lifted: drain, pause, lock, done, adopt, release, and who gave it."""

import dataclasses
import datetime as dt
from pathlib import Path

import msgspec
import pytest

from agent.act.orders.order_error import OrderError
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from agent.domain.work.decision import Hold
from agent.domain.work.order import Order
from tests.support.world import MINUTE, Rehearsed, rehearsed, work

WHO = "uid 1000"


async def say(world: Rehearsed, verb: str, target: str, **more: object) -> str:
    """Give an order and return its outcome."""
    said, _ = await world.app.say(Order(verb, target, **more), WHO)  # type: ignore[arg-type]
    return said


async def why(world: Rehearsed, slot: str = "train/0") -> str:
    """Return the code of the hold that the next cycle decides for a slot, or an empty text."""
    done = await world.cycle()
    return next(
        (each.reason.code for each in done.plan.decisions if isinstance(each, Hold) and str(each.slot) == slot), ""
    )


async def test_a_drained_workload_runs_on_and_is_not_filled_again(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, poll=MINUTE) as world:
        held = await world.until_running()
        await say(world, "drain", "train")
        await world.cycle(minutes=10)
        assert world.lease().state is LeaseState.RUNNING
        await say(world, "release", held.lease_id)
        await world.cycle(minutes=30)
        assert not world.live()
        assert await why(world) == "drained"
        await say(world, "resume", "train")
        await world.until_running()
        ordered = await world.events("operator.ordered")
        assert {event.reason_code for event in ordered} >= {"drain", "resume"}
        assert all(WHO in event.reason for event in ordered)


@pytest.mark.parametrize("target", ["train", "train/0", "lease", "host", "owner", "market:vast"])
async def test_what_is_paused_keeps_its_disk_and_stays_stopped(tmp_path: Path, target: str) -> None:
    async with rehearsed(tmp_path, poll=MINUTE) as world:
        held = await world.until_running()
        names = {"lease": held.lease_id, "host": f"host:{held.host_id}", "owner": f"owner:{held.owner_id}"}
        name = names.get(target, target)
        await say(world, "pause", name)
        await world.restart(after_seconds=60)
        assert await why(world) == "paused"
        await world.cycle(minutes=60)
        assert [each.holds_gpu for each in world.live()] == [False]
        assert not await world.intents(IntentKind.RESUME)
        await say(world, "resume", name)
        again = await world.until_running(minutes=10)
        assert again.lease_id == held.lease_id


async def test_a_locked_slot_starts_nothing_until_its_time(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, poll=MINUTE) as world:
        await say(world, "lock", "train/0", span=dt.timedelta(hours=2))
        assert await why(world) == "locked"
        await world.cycle(minutes=60)
        assert not world.contracts()
        await world.cycle(minutes=65)
        assert len(world.contracts()) == 1


async def test_a_locked_host_owner_or_market_is_not_rented_from(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, poll=MINUTE) as world:
        held = await world.until_running()
        await say(world, "lock", f"host:{held.host_id}")
        await say(world, "release", "train")
        await world.until_running()
        second = next(lease for lease in world.leases() if lease.state is LeaseState.RUNNING)
        assert second.host_id != held.host_id
        await say(world, "lock", f"owner:{second.owner_id}")
        await say(world, "lock", "market:vast")
        await say(world, "release", "train")
        await world.cycle(minutes=20)
        assert not world.live()
        await say(world, "unlock", "market:vast")
        await world.until_running()
        third = next(lease for lease in world.leases() if lease.state is LeaseState.RUNNING)
        assert third.owner_id != second.owner_id


async def test_what_is_done_is_released_and_never_filled_again(tmp_path: Path) -> None:
    made = work(slots=2)
    if hasattr(made, "kind"):
        from agent.domain.work import workload

        made = dataclasses.replace(made, kind=workload.WorkloadKind.BATCH)
    async with rehearsed(tmp_path, workloads=(made,), poll=MINUTE) as world:
        await world.until_running()
        await say(world, "done", "train/0")
        await world.restart(after_seconds=600)
        await world.cycle(minutes=60)
        assert [str(lease.slot) for lease in world.leases()] == ["train/1"]
        assert await why(world) == "done"


async def test_a_held_orphan_is_adopted_into_its_empty_slot(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, poll=MINUTE) as world:
        held = await world.until_running()
        async with world.app.ledger.transaction() as tx:
            tx.update_lease(msgspec.structs.replace(held, is_held=True))
        with pytest.raises(OrderError, match="held are"):
            await say(world, "adopt", "host:none")
        await say(world, "adopt", held.instance_id)
        assert not world.lease().is_held
        with pytest.raises(OrderError) as refused:
            await say(world, "adopt", held.instance_id)
        assert refused.value.code == "not_held"


@pytest.mark.parametrize(
    ("verb", "target", "code"),
    [
        ("drain", "nothing", "unknown_target"),
        ("drain", "train/7", "unknown_target"),
        ("pause", "market:elsewhere", "unknown_target"),
        ("release", "train", "no_lease"),
        ("resume", "train", "nothing_holds"),
        ("unlock", "train", "nothing_locked"),
        ("done", "host:1", "bad_target"),
        ("explode", "train", "unknown_verb"),
    ],
)
async def test_an_order_that_fits_nothing_changes_nothing(tmp_path: Path, verb: str, target: str, code: str) -> None:
    async with rehearsed(tmp_path, poll=MINUTE) as world:
        with pytest.raises(OrderError) as refused:
            await say(world, verb, target)
        assert refused.value.code == code
        assert not await world.events("operator.ordered")
        assert not world.app.ledger.recollection(world.clock.now()).expiring


async def test_a_word_given_again_counts_from_then(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, poll=MINUTE) as world:
        await say(world, "lock", "train")
        await say(world, "lock", "train", span=dt.timedelta(minutes=5))
        await world.cycle(minutes=6)
        assert len(world.contracts()) == 1
