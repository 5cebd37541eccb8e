"""One run of a job tick by tick, for a picture."""

from itertools import pairwise

from agent.lab.engine import run_timeline
from agent.lab.jobs import offline_optimum, tick_engine
from agent.lab.jobs.job_terms import HOUR, JobCase
from agent.lab.jobs.tick_engine import Choice, Policy, Sight


def timeline(case: JobCase, ticks: int, lanes: tuple[run_timeline.Lane, ...]) -> run_timeline.Timeline:
    """Return the picture of a case: the capacity of each pool over `ticks`, and the runs of the job."""
    terms, up = case.terms, case.course.up[:ticks]
    return run_timeline.Timeline(
        case=case.key,
        gap=terms.tick / HOUR,
        bands=tuple(run_timeline.Band(pool, tuple(up[:, place].tolist())) for place, pool in enumerate(terms.pools)),
        work=terms.work / HOUR,
        allowed=terms.deadline / HOUR,
        lanes=lanes,
    )


class _RecordingPolicy:
    """A policy that records its choice at each tick."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.done: list[float] = []

    def choose(self, sight: Sight, /) -> Choice:
        self.done.append(sight.done / HOUR)
        return self._policy.choose(sight)


def lane(strategy: str, case: JobCase, policy: Policy) -> run_timeline.Lane:
    """Return the run of a case under a policy."""
    recording = _RecordingPolicy(policy)
    run = tick_engine.play(case, recording)
    ended = case.terms.work / HOUR if run.finished is not None else recording.done[-1]
    held = [(tick, choice.pool) for tick, choice in enumerate(run.choices) if choice.tenure is not None]
    return run_timeline.Lane(
        strategy=strategy,
        tenures=tuple(choice.tenure for choice in run.choices),
        done=(*recording.done, ended),
        dollars=run.cost,
        moves=tuple(tick for (_, before), (tick, pool) in pairwise(held) if pool != before),
    )


def bound(strategy: str, case: JobCase) -> run_timeline.Lane | None:
    """Return the run of the exact optimum, or None if the job cannot be done in time."""
    held = offline_optimum.choices(case)
    return lane(strategy, case, tick_engine.Planned(held)) if held is not None else None
