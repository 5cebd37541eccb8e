"""`deadline-pools`, with regimes fitted on all records but the one that it is judged on."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from agent.decide.deadline import regimes
from agent.lab.availability import span
from agent.lab.bench import blocks
from agent.lab.cross_validation.trace_records import Record
from agent.lab.deadline import hazard_fitting
from agent.lab.pools import pools_problem, regime_fitting
from agent.lab.pools.pools_jobs import Job, Windows

MOST_INSTANCES = 16
"""Instances that must be there at once in a record of counts, or the most that the record ever shows."""
SETS = (
    *((f"us-west-2a_{kind}", f"us-west-2b_{kind}") for kind in ("v100_1", "v100_8", "k80_1", "k80_8")),
    ("us-east-1a", "us-east-1c"),
    ("us-east-1a", "us-east-1c", "us-east-1d"),
    ("us-east-2a", "us-west-2a"),
    ("us-east-1a", "us-east-2a", "us-west-2a"),
    ("us-east-1a", "us-east-1f", "us-east-2a", "us-west-2a", "us-west-2b"),
    ("asia-southeast1-b", "us-central1-a", "us-east4-b"),
    ("asia-southeast1-b", "us-central1-a", "us-east4-b", "us-central1-b", "us-east4-a", "us-west1-a"),
)
"""Sets of pools or zones: few scarce ones, and several. A record is judged on each set that it has, and on all its
pools."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The jobs in each record, their stride in hours, and the on-demand price in $/h where a record has none."""

    work: float
    allowed: tuple[float, ...]
    overheads: tuple[float, ...]
    stride_hours: float
    unknown_on_demand_price: float | None = None
    sets: tuple[tuple[str, ...], ...] = SETS
    pays_for_probes: bool = False


def problem(plan: Plan, judged: Record, others: Sequence[Record]) -> pools_problem.PoolsProblem:
    """Return the windows of a record, in which ours starts from the regimes and hazards of the other records."""
    most = max(int(trace.available.max()) for trace in judged.traces)
    on_demand = None if _has_on_demand_prices(judged) else plan.unknown_on_demand_price
    seen = regime_fitting.sights([each.folder for each in others], MOST_INSTANCES)
    return pools_problem.PoolsProblem(
        folder=judged.folder,
        sets=tuple(sets(judged, plan.sets)),
        jobs=tuple(
            Job(plan.work, allowed, overhead, max(min(MOST_INSTANCES, most), 1))
            for allowed in plan.allowed
            for overhead in plan.overheads
        ),
        windows=Windows(max(plan.allowed), plan.stride_hours, None, on_demand),
        first_regimes=regimes.with_flicker(regime_fitting.fit(seen)),
        first_hazards=hazard_fitting.fit(seen),
        pays_for_probes=plan.pays_for_probes,
    )


def longest(record: Record, ratio: float) -> float:
    """Return the hours of the longest job whose deadline, `ratio` times its work, fits into a record."""
    ticks, gap = min(trace.ticks for trace in record.traces), record.traces[0].gap_seconds
    return (ticks - blocks.SPARE_TICKS) * gap / 3600 / ratio


def sets(record: Record, among: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the sets whose pools a record has, and the set of all pools; each region's pools if it has no set."""
    names = {name for trace in record.traces for name in (trace.pool, trace.pool.partition("_")[0])}
    found = [each for each in among if names.issuperset(each)]
    if not found:
        groups = span.groups(record.traces)
        found = [tuple(trace.pool for trace in traces) for name, traces in groups if name != "all"]
    return [*found, tuple(trace.pool for trace in record.traces)]


def _has_on_demand_prices(record: Record) -> bool:
    return not any(np.isnan(trace.on_demand_prices).any() for trace in record.traces)
