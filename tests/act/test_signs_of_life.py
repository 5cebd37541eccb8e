"""Whose guards get signs of life, and where: adopted and renamed leases, two in one slot, and many of them."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from agent.act.guarding import dead_man_switches, signs_of_life
from agent.act.guarding.signs_of_life import SignsOfLife
from agent.clock import SteppedClock
from agent.domain.record.guard_run import GuardRun
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.work import kept_terms
from agent.domain.work.guard_terms import Bucket
from agent.domain.work.workload import Workload
from agent.ledger.changes import Changes
from agent.ledger.memory import Memory
from agent.ledger.store import Ledger
from tests.support import builders, s3_server
from tests.support.s3_server import SECRET, S3Server

NOW = builders.NOW
HOURS = timedelta(hours=1)
FLEET = "c0ffee000000"


@pytest.fixture
def server() -> Iterator[S3Server]:
    with s3_server.served() as running:
        yield running


def switched(hours: float | None = 6.0, **changes: Any) -> Workload:
    made = builders.guarded(**changes)
    assert made.guard is not None
    return replace(made, guard=replace(made.guard, deadman=None if hours is None else hours * HOURS))


def run(index: int = 0, number: int = 1, *, slot: str = "train", name: str = "train", ago: float = 5.0) -> GuardRun:
    return GuardRun(Slot(slot, index), number, name, "spec", NOW - ago * HOURS)


def folders(leases: list[Lease], runs: list[GuardRun], *works: Workload) -> dict[str, float | None]:
    """Return the hours of the switch that is looked after in each folder."""
    known = Memory(leases={held.lease_id: held for held in leases}, guard_runs=runs).recollection(NOW)
    found = dead_man_switches.switches(known, works, "f1")
    return {each.folder: None if each.after is None else each.after / HOURS for each in found}


def test_a_lease_gets_signs_in_the_folder_of_its_run_alone() -> None:
    runs = [run(number=1), run(number=2, ago=0.5), run(1)]
    assert folders([builders.lease(guard_run=1)], runs, switched()) == {"f1/train/0/1": 6.0}
    assert folders([builders.lease()], runs, builders.workload()) == {}


def test_an_adopted_lease_gets_signs_wherever_its_container_may_look() -> None:
    # A later run than the first began after its container.
    runs = [run(), run(number=2, ago=2.0), run(number=3, ago=0.5), run(1), run(slot="other", name="other")]
    adopted = builders.lease(opened_at=NOW - HOURS)
    assert folders([adopted], runs, switched()) == {"f1/train/0/2": 6.0, "f1/train/1/1": 6.0}


class Counted(tuple[GuardRun, ...]):
    """Runs that count how often somebody goes through all of them."""

    __slots__ = ()
    reads: ClassVar[list[int]] = []

    def __iter__(self) -> Iterator[GuardRun]:
        self.reads.append(len(self))
        return super().__iter__()


def test_the_runs_of_the_ledger_are_read_once_for_all_leases() -> None:
    """Each cycle went through every run there ever was, for each of its leases."""
    leases = {f"vast-{each}": builders.lease(each, slot=Slot("train", each), guard_run=1) for each in range(5)}
    runs = Counted([run(index) for index in range(5)])
    known = replace(Memory(leases=leases).recollection(NOW), guard_runs=runs)
    assert len(dead_man_switches.switches(known, [switched()], "f1")) == 5
    assert Counted.reads == [5]


def test_a_commit_without_runs_leaves_those_that_are_known() -> None:
    memory = Memory(guard_runs=[run()])
    known = memory.guard_runs
    Changes(memory).remember()
    assert memory.guard_runs is known


def test_a_lease_of_a_renamed_workload_gets_them_in_the_folder_of_the_old_name() -> None:
    renamed = switched(name="fit", was="train")
    held = builders.lease(slot=Slot("fit", 0), guard_run=1)
    assert folders([held], [run(), run(slot="fit")], renamed) == {"f1/train/0/1": 6.0}


def test_of_two_leases_in_one_folder_the_switch_that_fires_first_counts() -> None:
    rents = [kept_terms.recorded(builders.lease(n, guard_run=1), switched(hours)) for n, hours in enumerate([24, 1])]
    never = kept_terms.recorded(builders.lease(3, guard_run=1), switched(None))
    for leases in (rents, rents[::-1], [never, *rents], [*rents, never]):
        assert folders(leases, [run()], switched(12)) == {"f1/train/0/1": 1.0}
    assert folders([never], [run()], switched(12)) == {"f1/train/0/1": None}


def test_a_lease_whose_rent_recorded_no_switch_has_that_of_the_file() -> None:
    older = '{"is_batch":false,"endpoint":"e","bucket":"b","prefix":"p","done_codes":[0]}'
    for terms in (None, older):
        held = builders.lease(guard_run=1, guard_terms=terms)
        assert folders([held], [run()], switched(12)) == {"f1/train/0/1": 12.0}


async def test_a_switch_whose_last_sign_nobody_knows_may_fire_at_any_time(tmp_path: Path) -> None:
    clock = SteppedClock(NOW)
    ledger = await Ledger.open(tmp_path / "ledger.sqlite", clock=clock, fleet_id="f1")
    try:
        async with ledger.transaction() as tx:
            tx.open_lease(builders.lease(guard_run=1))
            tx.begin_run(run())
        signs = SignsOfLife(ledger, clock, asyncio.create_task, lambda _: SECRET)
        signs.look([switched()])
        assert signs.fires() == ((Slot("train", 0), None, "stops"),)
    finally:
        await ledger.close()


class Lives:
    """A daemon that starts again and again: each life has a memory of its own, and the ledger stays."""

    def __init__(self, path: Path, place: Bucket) -> None:
        self.clock, self._path, self.secret = SteppedClock(NOW), path, SECRET
        made = switched()
        assert made.guard is not None
        self.work = replace(made, guard=replace(made.guard, bucket=place))

    @asynccontextmanager
    async def life(self, *, is_first: bool = False) -> AsyncIterator[SignsOfLife]:
        ledger = await Ledger.open(self._path, clock=self.clock, fleet_id=FLEET)
        try:
            if is_first:
                async with ledger.transaction() as tx:
                    tx.open_lease(builders.lease(guard_run=1))
                    tx.begin_run(run())
            signs = SignsOfLife(ledger, self.clock, asyncio.create_task, lambda _: self.secret)
            yield signs
            await signs.close()
        finally:
            await ledger.close()

    async def turn(self, signs: SignsOfLife, *, is_good: bool = True) -> tuple[str, ...]:
        """Do one turn as the daemon does, and return the alerts that its pass would record."""
        await signs.keep([self.work])
        told = tuple(alert.sentence for alert in signs.alerts())
        if is_good:
            signs.note_pass()
        signs.look([self.work])
        await asyncio.gather(*signs._running.values())
        self.clock.advance(65.0)
        return told


async def test_a_stopped_daemon_names_the_moment_that_counts_from_a_sign_of_before_its_start(
    tmp_path: Path, server: S3Server
) -> None:
    lives = Lives(tmp_path / "ledger.sqlite", server.place())
    async with lives.life(is_first=True) as signs:
        await lives.turn(signs)
        await signs.keep([lives.work])
    lives.clock.advance(7200.0)
    async with lives.life() as signs:
        await signs.keep([lives.work])
        assert signs.fires() == ((Slot("train", 0), NOW + 6 * HOURS, "stops"),)
        assert signs.alerts() == ()
        lives.secret = "not a key"
        said = await signs.spread([lives.work])
        assert said.startswith("0 of 1 dead man's switch(es) can read it in their buckets; without a new sign these")
        assert said.endswith("fire: train/0 at 2026-11-20 18:00 UTC or soon after")


async def test_a_daemon_that_starts_again_and_again_alerts_about_a_bucket_that_it_cannot_write(
    tmp_path: Path, server: S3Server
) -> None:
    lives = Lives(tmp_path / "ledger.sqlite", server.place())
    async with lives.life(is_first=True) as signs:
        await lives.turn(signs)
        await lives.turn(signs)
    lives.secret = "not a key"
    told: list[str] = []
    for _ in range(8):
        async with lives.life() as signs:
            for _ in range(3):
                told += await lives.turn(signs)
            lives.clock.advance(600.0)
    # A quarter of six hours, whatever the number of starts.
    assert told[0].startswith("the guard of train/0 has had no sign of life for 1 h 3")
    assert len(told) < 8


async def test_a_daemon_whose_every_pass_fails_since_each_start_alerts(tmp_path: Path, server: S3Server) -> None:
    lives = Lives(tmp_path / "ledger.sqlite", server.place())
    async with lives.life(is_first=True) as signs:
        await lives.turn(signs)
        await lives.turn(signs)
    told: list[str] = []
    while not told:
        async with lives.life() as signs:
            for _ in range(4):
                told += await lives.turn(signs, is_good=False)
        lives.clock.advance(600.0)
        assert lives.clock.now() < NOW + 2 * HOURS
    assert "no pass of this daemon has succeeded since its start" in told[0]


async def test_a_daemon_that_dies_in_its_first_pass_again_and_again_alerts_once(
    tmp_path: Path, server: S3Server
) -> None:
    lives = Lives(tmp_path / "ledger.sqlite", server.place())

    async def told(signs: SignsOfLife) -> list[str]:
        events = await (await signs._ledger.reader()).events(kinds=["alert.sign_unwritten"], limit=9)
        return [event.reason for event in events]

    async with lives.life(is_first=True) as signs:
        await lives.turn(signs)
        await lives.turn(signs)
    for _ in range(9):
        lives.clock.advance(900.0)
        async with lives.life() as signs:
            # It is killed before its first pass ends, so no later step of that pass records anything.
            await signs.keep([lives.work])
    async with lives.life() as signs:
        (said,) = await told(signs)
        assert said.startswith("the last 5 starts of this daemon ended before their second pass, and for 1 h 32 min")
        # A pass after a good one ends the count.
        await lives.turn(signs)
        await lives.turn(signs)
        assert signs._ledger.short_starts.count == 0


async def test_the_sign_of_a_folder_that_no_container_reads_any_more_is_forgotten(
    tmp_path: Path, server: S3Server
) -> None:
    lives = Lives(tmp_path / "ledger.sqlite", server.place())
    async with lives.life(is_first=True) as signs:
        await lives.turn(signs)
        await signs.keep([lives.work])
        known = signs._ledger.recollection()
        assert [(sign.folder, sign.written_at) for sign in known.signs] == [(f"{FLEET}/train/0/1", NOW)]
        async with signs._ledger.transaction() as tx:
            tx.update_lease(msgspec.structs.replace(known.leases[0], state=LeaseState.ENDED, ended_at=NOW))
        await signs.keep([lives.work])
        assert signs._ledger.recollection().signs == ()


COUNT = 3 * signs_of_life.MOST_AT_ONCE + 2


@asynccontextmanager
async def many(folder: Path, server: S3Server, clock: SteppedClock) -> AsyncIterator[tuple[SignsOfLife, Workload]]:
    """More switches than signs are written at once."""
    made = switched(slots=COUNT)
    assert made.guard is not None
    work = replace(made, guard=replace(made.guard, bucket=server.place()))
    ledger = await Ledger.open(folder / "ledger.sqlite", clock=clock, fleet_id="f1")
    try:
        async with ledger.transaction() as tx:
            for index in range(COUNT):
                tx.open_lease(builders.lease(index, slot=Slot("train", index), guard_run=1))
                tx.begin_run(run(index))
        yield SignsOfLife(ledger, clock, asyncio.create_task, lambda _: SECRET), work
    finally:
        await ledger.close()


async def test_with_a_slow_poll_too_every_one_of_many_switches_gets_its_sign(tmp_path: Path, server: S3Server) -> None:
    """The same sixteen got one in each look, and the others would have fired."""
    clock = SteppedClock(NOW)
    async with many(tmp_path, server, clock) as (signs, work):
        for _ in range(5):
            signs.look([work], is_ordered=True)
            await asyncio.wait(signs._running.values())
            clock.advance(600)
        names = [name for name in await asyncio.to_thread(server.names) if name.endswith("/alive.json")]
        assert len(names) == COUNT


async def test_an_absence_reaches_every_switch_however_many_there_are(tmp_path: Path, server: S3Server) -> None:
    async with many(tmp_path, server, SteppedClock(NOW)) as (signs, work):
        said = await signs.spread([work])
        assert said == f"{COUNT} of {COUNT} dead man's switch(es) can read it in their buckets"
        names = [name for name in await asyncio.to_thread(server.names) if name.endswith("/alive.json")]
        assert len(names) == COUNT
        told = json.loads(await asyncio.to_thread(server.get, names[0]))
        assert (told["written"], told["absent_seconds"]) == (int(NOW.timestamp()), 0)
