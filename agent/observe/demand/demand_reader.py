"""Asks the demands of workloads, beside the cycles.

Invariants:
1. No cycle waits for an answer: at most one question a workload is under way, each with a deadline.
2. A question that does not end counts as one without an answer, and no other one is begun beside it.
3. A question without an answer leaves the last answer as it is. After a gap the time of steady answers begins anew.
   A question is asked at most once a cycle, so a long poll is no gap.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import structlog

from agent import background_tasks
from agent.clock import Clock
from agent.decide.facts import Alert
from agent.decide.operators.notices import Notice
from agent.domain.record.event_kind import EventKind
from agent.domain.slot_demand import Demand, DemandReport
from agent.domain.work.workload import Workload
from agent.observe.demand import demand_sources
from agent.observe.demand.demand_sources import DemandUnknownError

log = structlog.get_logger("gpubid.demand")

DemandReports = Mapping[str, DemandReport]
"""By workload."""
LASTING = timedelta(minutes=10)
"""A demand without an answer for longer than this raises an alert."""
GAP = 3
"""After this many multiples of the time between two questions, the series of earlier answers counts as interrupted."""
LEAST_GAP = timedelta(minutes=2)
STUCK_SECONDS = 60.0
"""A question that lasts longer does not end: its program cannot be killed, as on a file server that hangs."""

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


class DemandReader:
    """The last answers of all demands."""

    def __init__(self, clock: Clock, spawn: Spawn) -> None:
        """Start tasks with `spawn`."""
        self._clock = clock
        self._spawn = spawn
        self._running: dict[str, asyncio.Task[None]] = {}
        self._asked_at: dict[str, float] = {}
        self._began_at: dict[str, float] = {}
        self._terms: dict[str, Demand] = {}
        self._poll = timedelta()
        self._answers: dict[str, deque[tuple[datetime, int]]] = {}
        self.reports: DemandReports = {}
        """The last answers. The mapping is replaced at every change."""

    def look(self, workloads: Iterable[Workload], poll: timedelta) -> None:
        """Begin the questions that are due. This is called once a cycle, and `poll` is the pause between two cycles."""
        self._poll = poll
        wanted = {work.name: work.demand for work in workloads if work.demand is not None}
        for name in [name for name, terms in self._terms.items() if wanted.get(name) != terms]:
            self._forget(name)
        self._terms = wanted
        self._running = {name: task for name, task in self._running.items() if not task.done()}
        # A question's own deadline is in real seconds, also where the clock runs faster.
        time = asyncio.get_running_loop().time
        for name, terms in wanted.items():
            last, now = self._asked_at.get(name), self._clock.monotonic()
            if name in self._running and time() - self._began_at[name] >= STUCK_SECONDS:
                self._note_trouble(name, "the question does not end, and cannot be ended")
            if name not in self._running and (last is None or now - last >= terms.every.total_seconds()):
                self._asked_at[name], self._began_at[name] = now, time()
                self._running[name] = self._spawn(self._ask(name, terms))

    async def settle(self) -> None:
        """Wait for the questions under way."""
        await background_tasks.settle(self._running)

    async def close(self) -> None:
        """End every question."""
        await background_tasks.end(self._running)

    def alerts(self) -> tuple[Alert, ...]:
        """Return an alert for each demand that has had no answer for long."""
        oldest = self._clock.now() - LASTING
        return tuple(
            Alert(EventKind.ALERT_DEMAND_UNKNOWN, name, _sentence(name, report))
            for name, report, since in self._troubled()
            if since <= oldest
        )

    def notices(self) -> tuple[Notice, ...]:
        """Return a notice for each demand whose last question has no answer."""
        return tuple(Notice(name, "demand_unknown", _sentence(name, report)) for name, report, _ in self._troubled())

    def silences(self) -> dict[str, float]:
        """Return for how many seconds each demand has had no answer, by workload; 0 if the last one came."""
        troubled = {name: (self._clock.now() - since).total_seconds() for name, _, since in self._troubled()}
        return {name: max(troubled.get(name, 0.0), 0.0) for name in self._terms}

    def _troubled(self) -> Iterator[tuple[str, DemandReport, datetime]]:
        for name, report in self.reports.items():
            if report.trouble_since is not None:
                yield name, report, report.trouble_since

    def _forget(self, name: str) -> None:
        """Forget the answers to another question."""
        self.reports = {each: report for each, report in self.reports.items() if each != name}
        self._asked_at.pop(name, None)
        self._answers.pop(name, None)

    async def _ask(self, name: str, terms: Demand) -> None:
        try:
            found = await demand_sources.tasks(terms)
        except Exception as error:  # noqa: BLE001 - else the last answer would count on, and nobody would be told
            why = (
                str(error) if isinstance(error, DemandUnknownError) else f"the question ended ({type(error).__name__})"
            )
            if self._terms.get(name) == terms:
                self._note_trouble(name, why)
        else:
            if self._terms.get(name) == terms:
                self._note_answer(name, terms, found)

    def _note_answer(self, name: str, terms: Demand, tasks: int) -> None:
        now, before = self._clock.now(), self.reports.get(name, DemandReport())
        gap = max(GAP * max(terms.every, self._poll), LEAST_GAP)
        is_steady = before.read_at is not None and now - before.read_at <= gap
        answers = self._answers.setdefault(name, deque())
        answers.append((now, tasks))
        while answers[0][0] < now - terms.shrink_after:
            answers.popleft()
        most = max(count for _, count in answers)
        self._keep(name, DemandReport(tasks, most, now, before.since if is_steady else now))

    def _note_trouble(self, name: str, why: str) -> None:
        before = self.reports.get(name, DemandReport())
        if not before.trouble:
            log.warning("demand.unknown", workload=name, reason=why)
        self._keep(name, replace(before, trouble=why, trouble_since=before.trouble_since or self._clock.now()))

    def _keep(self, name: str, report: DemandReport) -> None:
        self.reports = {**self.reports, name: report}


def _sentence(name: str, report: DemandReport) -> str:
    last = f"the last answer is of {report.read_at:%H:%M} UTC" if report.read_at is not None else "there was none yet"
    return f"the demand of {name} has no answer: {report.trouble}; {last}, and no slot goes for that"
