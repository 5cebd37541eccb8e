"""Records runs of slots that begin, and that nothing of their work is done."""

from collections.abc import Iterable

from agent.decide.operators import guard_runs
from agent.domain.record.guard_run import GuardRun
from agent.domain.work.deadline import Progress
from agent.ledger.transaction import Transaction


def write(tx: Transaction, runs: Iterable[GuardRun], begun: Iterable[GuardRun], redone: Iterable[Progress]) -> None:
    """Record `runs`, an event for each of them in `begun`, and the progress of their workloads."""
    for run in runs:
        tx.begin_run(run)
    for event in guard_runs.news(begun):
        tx.append_event(event)
    for progress in redone:
        tx.keep_progress(progress)
