"""The figures of a job's run beside its cost: net value, hours with and without work, starts, and where it ran.

An hour of work in time is worth an hour on demand in the cheapest pool, averaged over the time allowed. Work after the
deadline is worth nothing.
"""

from collections.abc import Mapping

from agent.lab.jobs.job_terms import HOUR, JobCase
from agent.lab.jobs.tick_engine import Run

TENTHS: Mapping[str, str] = {"useful h, 1 in 10 below": "useful h"}
"""The figure below which a tenth of the runs are, and the figure of a run."""
NOTE = "an hour of work in time is worth an hour on demand in the cheapest pool; idle: without work until the job ends"


def of(run: Run, case: JobCase) -> dict[str, float]:
    """Return the figures of a run by name, in dollars and hours."""
    terms = case.terms
    allowed = case.course.on_demand[: max(terms.ticks, 1)]
    useful = run.in_time / HOUR
    end = min(run.finished or terms.counted, terms.counted) / HOUR
    return {
        "net $": useful * float(allowed.min(axis=1).mean()) - run.cost,
        "useful h": useful,
        "idle h": end - useful,
        "starts": float(run.starts),
        "interruptible h": run.spot_hours,
        "on demand h": run.on_demand_hours,
    }
