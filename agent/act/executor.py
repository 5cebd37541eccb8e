"""Runs a plan: first the endings, then the paying orders, a few at a time. A cancellation cuts no order in half."""

import asyncio
from collections.abc import Iterable, Mapping

from agent.act.journal import Journal
from agent.act.release_attempts import ReleaseAttempts
from agent.decide.reconcile.billed_times import Look
from agent.domain.record.intent import Intent
from agent.domain.work.decision import Decision, Hold, Pause, Reason, Release, Rent, slot_of
from agent.domain.work.workload import Workload

MOST_AT_ONCE = 4
"""Orders at a time; the market's own pace decides how fast they leave."""


class Executor:
    """Carries out decisions through the journal."""

    def __init__(self, journal: Journal) -> None:
        """Run everything through `journal`."""
        self._journal = journal
        self._endings = ReleaseAttempts(journal, journal.clock)
        self._gate = asyncio.Semaphore(MOST_AT_ONCE)

    def see(self, looks: Mapping[str, Look]) -> None:
        """Take the last look at each lease and its market's record, to meter a lease up to its end."""
        self._journal.looks = looks

    def hasten(self) -> None:
        """Let ending calls that failed a moment ago be tried at once, unless the market closed them: a person asks."""
        self._endings.hasten()

    async def run(self, decisions: Iterable[Decision], workloads: Mapping[str, Workload]) -> list[Intent]:
        """Carry out all decisions but holds; return the intents as they ended.

        A cancellation waits until every order that has begun is resolved or in doubt. An answer that nobody writes down
        is money that nobody counts.
        """
        todo = [decision for decision in decisions if not isinstance(decision, Hold)]
        ending = [decision for decision in todo if isinstance(decision, Release | Pause)]
        paying = [decision for decision in todo if not isinstance(decision, Release | Pause)]
        done: list[Intent] = []
        for batch in (ending, paying):
            tasks = [asyncio.create_task(self._one(decision, workloads)) for decision in batch]
            done += await _all(tasks)
        return done

    async def _one(self, decision: Decision, workloads: Mapping[str, Workload]) -> list[Intent]:
        work = workloads.get(slot_of(decision).workload)
        async with self._gate:
            if isinstance(decision, Release | Pause):
                return await self._endings.end(decision, work)
            intent = await self._journal.carry_out(decision, work)
            if intent is None and isinstance(decision, Rent) and decision.kept is not None:
                # Its task is done, and nothing else begins there.
                reason = Reason("done", f"{decision.kept.slot} is done, and its host goes on with no other task")
                return await self._endings.end(Release(decision.kept, reason), work)
            return [] if intent is None else [intent]


async def _all(tasks: list["asyncio.Task[list[Intent]]"]) -> list[Intent]:
    """Wait for every task, also when cancelled, and raise the first error after all have ended."""
    if not tasks:
        return []
    waiting = asyncio.gather(*tasks, return_exceptions=True)
    try:
        ended = await asyncio.shield(waiting)
    except asyncio.CancelledError:
        await waiting
        raise
    for result in ended:
        if isinstance(result, BaseException):
            raise result
    return [intent for result in ended if isinstance(result, list) for intent in result]
