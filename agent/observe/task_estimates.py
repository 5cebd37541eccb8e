"""What a task of an array will cost at most by `gpubid estimate`, while too few are done to know; beside the cycles.

Invariants:
1. No cycle waits for it. It is computed once an hour, and only for arrays that say how long a task takes and of which
   fewer than five slots are done.
2. A figure counts only for the files from which it was computed: changed ones are estimated at once.
3. It is the "9 in 10 under" of the cheapest option of the workload's own strategy. Without prices in the ledger there
   is none.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import structlog

from agent import background_tasks
from agent.baselines.catalogue import Catalogue
from agent.clock import Clock
from agent.config import job_table
from agent.config.problems import ConfigError
from agent.decide.accounting import task_costs
from agent.decide.strategy import Tuned
from agent.domain import money
from agent.domain.money import Usd
from agent.domain.record.hold import Word
from agent.domain.work.workload import Workload
from agent.ledger.ledger_errors import LedgerError
from agent.ledger.memory import Recollection
from agent.ledger.storage_port import Storage
from agent.observe import estimate_inputs

log = structlog.get_logger("gpubid.estimate")

EVERY = timedelta(hours=1)

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
TaskFigures = Mapping[str, Usd]
"""By workload."""


class TaskEstimates:
    """The last estimates of one task of each array that needs one."""

    def __init__(self, clock: Clock, spawn: Spawn, ledger: Path | Storage, markets: Iterable[str]) -> None:
        """Read prices and interruptions from the file of `ledger`; start tasks with `spawn`."""
        self._clock = clock
        self._spawn = spawn
        self._ledger = ledger
        self._markets = tuple(markets)
        self._begun_at: dict[str, float] = {}
        self._asked: dict[str, tuple[Workload, Tuned]] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self.figures: TaskFigures = {}
        """The last figures. The mapping is replaced at every change."""

    def look(self, workloads: Iterable[Workload], known: Recollection, tuned: Mapping[str, Tuned]) -> None:
        """Begin the estimates that are due, and forget those that are not needed any more."""
        needed = {work.name: work for work in workloads if self._is_needed(work, known) and work.strategy in tuned}
        asked = {name: (work, tuned[work.strategy]) for name, work in needed.items()}
        same = {name for name in needed if self._asked.get(name) == asked[name]}
        self._asked = asked
        if self.figures.keys() - same:
            self.figures = {name: figure for name, figure in self.figures.items() if name in same}
        self._begun_at = {name: at for name, at in self._begun_at.items() if name in same}
        self._running = {name: task for name, task in self._running.items() if not task.done()}
        now = self._clock.monotonic()
        for name, work in needed.items():
            begun = self._begun_at.get(name)
            is_due = begun is None or now - begun >= EVERY.total_seconds()
            if is_due and name not in self._running:
                self._begun_at[name] = now
                self._running[name] = self._spawn(self._estimate(work, tuned[work.strategy]))

    async def settle(self) -> None:
        """Wait for the estimates under way."""
        await background_tasks.settle(self._running)

    async def close(self) -> None:
        """End every estimate."""
        await background_tasks.end(self._running)

    def _is_needed(self, work: Workload, known: Recollection) -> bool:
        if work.array is None or work.array.task_hours is None:
            return False
        done = task_costs.marked(work, Word.DONE, known.holds, self._clock.now())
        return task_costs.costs(done.keys(), task_costs.renamed(known.tasks, (work,))) is None

    async def _estimate(self, work: Workload, tuned: Tuned) -> None:
        try:
            most = await self._most(work, tuned)
        except (ConfigError, LedgerError) as error:
            log.info("task.unestimated", workload=work.name, reason=str(error)[:200])
            most = None
        if self._asked.get(work.name) != (work, tuned):
            return
        kept = {name: figure for name, figure in self.figures.items() if name != work.name}
        self.figures = kept if most is None else {**kept, work.name: most}

    async def _most(self, work: Workload, tuned: Tuned) -> Usd | None:
        """Return the upper figure of the cheapest option, or None if there is no option with one."""
        now = self._clock.now()
        measured = await estimate_inputs.measured(self._ledger, work, now)
        hours = work.array.task_hours if work.array is not None else None
        table = job_table.read(None, estimate_inputs.of_workload(work, now, measured), {"hours": hours})
        markets = [name for name in self._markets if work.may_use(name)]
        found = await estimate_inputs.find(table, markets, self._ledger, {tuned.name: tuned}, Catalogue(()), now)
        options = [option for model in found for option in model.options if option.dollars_p90 is not None]
        cheapest = min(options, key=lambda option: option.dollars or option.dollars_least, default=None)
        return None if cheapest is None or cheapest.dollars_p90 is None else money.usd(cheapest.dollars_p90)
