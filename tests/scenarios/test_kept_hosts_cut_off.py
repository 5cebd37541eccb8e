"""Hosts that go on with another task, cut off at each step: by a crash, a loss, or a ledger that is lost or too old."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.act import crashpoint
from agent.domain.record.lease import LeaseState
from agent.domain.work.array_terms import ArrayTerms
from agent.ledger.ledger_errors import LedgerError
from tests.scenarios.test_kept_hosts import are_done, are_reassigned, done, played

ONE = ArrayTerms(1, task_hours=0.1)
LEDGER = ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm")


class Killed(BaseException):
    """The end of the process, at a place that the journal names."""


@contextlib.contextmanager
def killed_at(place: str) -> Iterator[None]:
    """Let the program end at the first time that it reaches a place."""

    def reached(step: str, kind: str) -> None:
        if f"{step}:{kind}" == place:
            raise Killed(place)

    with pytest.MonkeyPatch.context() as patched, contextlib.suppress(Killed):
        patched.setattr(crashpoint, "reached", reached)
        yield


@pytest.mark.parametrize("place", ["resolved:reassign", "told:reassign"])
async def test_a_crash_pays_for_minutes_and_does_no_task_twice(tmp_path: Path, place: str) -> None:
    async with played(tmp_path, slots=3, array=ONE) as (world, guards):
        with killed_at(place):
            await guards.until(are_done(world, 3))
        assert [lease.slot.index for lease in world.leases()] == [1]
        await world.restart(30.0)
        await guards.until(are_done(world, 2), minutes=60)
        mine = [lease for lease in await world.past_leases() if lease.slot.index == 1]
        if place == "told:reassign":
            assert [lease.label_intent_id != "" for lease in mine] == [True]
        else:
            # Nobody works on it there, and it is rented anew after some minutes.
            lost, again = mine
            assert (lost.end_reason, again.label_intent_id) == ("task_not_taken", "")
            assert lost.ended_at is not None
            assert (lost.ended_at - lost.opened_at).total_seconds() < 8 * 60
        await guards.until(are_done(world, 3), minutes=60)
        await guards.cycle(3)
        assert not world.live()
        assert sorted(guards.done()) == ["0", "1", "2"]


async def test_a_ledger_that_takes_no_row_leaves_the_host_to_its_release(tmp_path: Path) -> None:
    async with played(tmp_path, slots=2, array=ONE) as (world, guards):
        await guards.cycle(6)
        world.refuse_rows("leases")

        async def is_over() -> bool:
            return not world.live()

        with contextlib.suppress(LedgerError):
            await guards.until(is_over, minutes=10)
        assert done(world) == {"sweep/0"}
        world.accept_rows()
        await guards.until(are_done(world, 2), minutes=60)
        assert sorted(guards.done()) == ["0", "1"]
        assert not [lease for lease in world.leases() if lease.state is LeaseState.RUNNING]


async def test_a_kept_host_that_is_outbid_comes_back_to_its_second_task(tmp_path: Path) -> None:
    async with played(tmp_path, slots=2, array=ONE, minutes=12.0) as (world, guards):
        await guards.until(are_reassigned(world))
        await guards.cycle(3)
        (contract,) = world.live()
        rival = world.rival(contract.slice.machine_id, bid=0.5)
        await guards.cycle(2)
        assert [event.slot for event in await world.events("lease.interrupted")] == [1]
        world.market.remove_rival(rival)
        await guards.until(are_done(world, 2), minutes=120)
        assert sorted(guards.done()) == ["0", "1"]


@pytest.mark.only_sqlite
@pytest.mark.parametrize("is_lost", [True, False], ids=["lost", "restored"])
async def test_a_ledger_that_does_not_know_of_the_second_task_releases_its_host_and_loses_no_slot(
    tmp_path: Path, *, is_lost: bool
) -> None:
    async with played(tmp_path, slots=3, array=ONE) as (world, guards):
        await guards.cycle(5)
        await world.close()
        old = tmp_path / "old"
        old.mkdir()
        for name in LEDGER:
            if (tmp_path / name).exists():
                shutil.copy(tmp_path / name, old / name)
        await world.open()
        await guards.until(are_reassigned(world))
        await guards.cycle(2)
        await world.close()
        for name in LEDGER:
            (tmp_path / name).unlink(missing_ok=True)
            if not is_lost and (old / name).exists():
                shutil.copy(old / name, tmp_path / name)
        world.is_checked = False
        await world.open()
        await guards.until(are_done(world, 3), minutes=240)
        await guards.cycle(5)
        assert done(world) == {"sweep/0", "sweep/1", "sweep/2"}
        assert sorted(guards.done()) == ["0", "1", "2"]
        began = [slot for guard in guards.guards.values() for slot, _ in guard.tasks]
        assert sorted(began) == ["0", "1", "1", "2"]
        assert not world.live()
