"""Before five tasks of an array are done, the daemon estimates one as `gpubid estimate` does, from its own ledger."""

import dataclasses
from pathlib import Path

from agent.baselines.catalogue import Catalogue
from agent.config import job_table
from agent.decide.limits import task_reserve
from agent.domain import money
from agent.domain.record import hold
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.workload import Workload, WorkloadKind
from agent.observe import estimate_inputs
from tests.support.world import Rehearsed, rehearsed, work

SWEEP = work("sweep", kind=WorkloadKind.BATCH, slots=6, array=ArrayTerms(2, task_hours=2.0))


async def told(world: Rehearsed, asked: Workload) -> float | None:
    """Return "9 in 10 under" of the cheapest line of the own strategy in `gpubid estimate sweep --hours 2`."""
    now = world.clock.now()
    table = job_table.read(None, estimate_inputs.of_workload(asked, now, {}), {"hours": 2.0})
    place, tuned = world.config.ledger, world.scene.tuned
    models = await estimate_inputs.find(table, ["vast"], place, dict(tuned), Catalogue(()), now)
    own = [one for found in models for one in found.options if one.name == f"vast, {asked.strategy}"]
    return min(own, key=lambda one: one.dollars or 0.0).dollars_p90


async def test_it_is_the_upper_figure_of_gpubid_estimate_and_the_reserve_counts_by_it(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(SWEEP,)) as world:
        world.is_checked = False
        await world.cycle()
        figure, expected = world.app.estimates.figures["sweep"], await told(world, SWEEP)
        assert expected is not None
        assert figure == money.usd(round(expected, 6))
        done = await world.cycle()
        assert task_reserve.cost_of_a_task(done.fleet, SWEEP) == figure
        assert figure < SWEEP.prices.highest.over(2 * 3600)
        async with world.app.ledger.transaction() as tx:
            for place in SWEEP.places[:5]:
                tx.add_expiring(OperatorHold(Word.DONE, hold.of_slot(place), world.clock.now(), "a test"))
        known = world.app.ledger.recollection(world.clock.now())
        accounts = dict.fromkeys(SWEEP.places, next(iter(known.tasks.values())))
        world.app.estimates.look((SWEEP,), dataclasses.replace(known, tasks=accounts), world.scene.tuned)
        assert world.app.estimates.figures == {}, "five are done: the median counts"


async def test_work_that_says_no_hours_has_none(tmp_path: Path) -> None:
    plain = dataclasses.replace(SWEEP, array=ArrayTerms(2))
    async with rehearsed(tmp_path, workloads=(plain,)) as world:
        world.is_checked = False
        done = await world.cycle(minutes=2)
        assert world.app.estimates.figures == {}
        assert task_reserve.cost_of_a_task(done.fleet, SWEEP) == SWEEP.prices.highest.over(2 * 3600)


async def test_a_changed_file_is_estimated_at_once_and_its_old_figure_counts_no_more(tmp_path: Path) -> None:
    """A hundred tasks of ten hours began within the hour, at the cost of tasks of six minutes."""
    async with rehearsed(tmp_path, workloads=(SWEEP,)) as world:
        world.is_checked = False
        await world.cycle()
        before, known = world.app.estimates.figures["sweep"], world.app.ledger.recollection(world.clock.now())
        longer = dataclasses.replace(SWEEP, array=ArrayTerms(2, task_hours=20.0))
        world.app.estimates.look((longer,), known, world.scene.tuned)
        assert world.app.estimates.figures == {}, "until then `task_hours` at `max_price` counts"
        await world.app.estimates.settle()
        assert world.app.estimates.figures["sweep"].micros > 5 * before.micros
