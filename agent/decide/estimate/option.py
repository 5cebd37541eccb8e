"""A way to get a job done, and its estimated cost.

Price and hazard are uncertain, so both are equally likely cases. They count as independent: every price is combined
with every hazard. A hazard from a record is a Gamma posterior. Over it lifetimes are Lomax and their hazard falls with
age, as in recorded interruptions. `outcome_spread.py` computes expectation and 90th percentile.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from agent.decide.deadline import hazards
from agent.decide.estimate import checkpoints, outcome_spread
from agent.decide.estimate.job import Job
from agent.decide.estimate.run import NOTHING, Losses, Run, losses
from agent.decide.pricing.gamma_distribution import Gamma
from agent.domain.market.baseline import Baseline
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.work.workload import CheckpointPlace

CELLS = 16
"""Number of cases of an uncertain hazard. On 36 jobs and records, twice as many changed dollars and hours by less than
1 %, interruptions by at most 1.4 % and the chance to be late by less than 0.01; tests/decide/estimate has the worst."""

ASSUMED_INTERVAL = 0.25
"""Assumed hours between checkpoints if neither their interval nor their time is known; workloads have the same
default."""


@dataclass(frozen=True, slots=True)
class Hazard:
    """Interruptions per running hour: the market's part, which is uncertain if its record is short, and the host's own.

    `scale` is the share of the market's part that is left at the bid.
    """

    market: Gamma | float
    scale: float = 1.0
    host: float = 0.0

    @property
    def mean(self) -> float:
        """The mean, per hour."""
        market = self.market.mean if isinstance(self.market, Gamma) else self.market
        return market * self.scale + self.host

    @property
    def cases(self) -> tuple[float, ...]:
        """Equally likely rates."""
        market = self.market.cells(CELLS) if isinstance(self.market, Gamma) else (self.market,)
        return tuple(rate * self.scale + self.host for rate in market)

    @property
    def longest(self) -> float:
        """Hours from which on a stretch has no finite expectation: a short record cannot exclude the worst."""
        return self.market.weight / self.scale if isinstance(self.market, Gamma) and self.scale > 0 else math.inf


@dataclass(frozen=True, slots=True)
class Option:
    """Capacity for a job. `rates` are equally likely prices of all GPUs together; hours of loading and down.

    `storage` is dollars per hour and `per_gb` dollars per downloaded gigabyte, None if unknown. `cited` has the source
    of each figure, `unknown` the missing figures, `as_of` the date of the price.
    """

    name: str
    tenure: Tenure
    rates: tuple[UsdPerHour, ...]
    hazard: Hazard
    storage: float | None
    per_gb: float | None
    loading: float
    down: float
    cited: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    as_of: str = ""
    limit: UsdPerHour | None = None
    """The bid where the price paid is not the bid; `rates` are then expected prices."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of an option in dollars and hours; None if unknown or infinite.

    `dollars_least` is for a run without an interruption at the mean price. Storage and transfer are part of the
    dollars. `by_age` has the best time between checkpoints from each age of a lease on, both in hours.
    """

    name: str
    tenure: Tenure
    dollars_per_hour: float
    dollars_least: float
    dollars: float | None
    dollars_p90: float | None
    hours: float | None
    hours_p90: float | None
    interruptions: float | None
    interval: float | None
    young: float | None
    daly: float | None
    by_age: tuple[tuple[float, float], ...]
    storage_dollars: float | None
    transfer_dollars: float | None
    late: float | None
    as_of: str
    cited: tuple[str, ...]
    unknown: tuple[str, ...]
    limit_dollars_per_hour: float | None = None
    """The bid where the price paid is not the bid."""
    margin_dollars_per_hour: float | None = None
    """That bid less the expected price."""


@dataclass(frozen=True, slots=True)
class _Case:
    dollars: outcome_spread.Case
    hours: outcome_spread.Case
    interruptions: float


def estimate(job: Job, option: Option) -> Estimate:
    """Return the cost of a job by this way."""
    run, unknown = _run(job, option.hazard)
    cases = list(_cases(run, option, job.moved_gb, job.first_gb))
    dollars = [one.dollars if one else None for one in cases]
    hours = [one.hours if one else None for one in cases]
    is_bounded = run.stretch + run.restore < option.hazard.longest
    if not is_bounded:
        unknown = (*unknown, _endless(run, option.hazard))
    number = None if None in cases or not is_bounded else math.fsum(one.interruptions for one in cases if one)
    number = None if number is None else number / len(cases)
    hours_mean = outcome_spread.mean(hours) if is_bounded else None
    write, between = job.write, option.hazard.mean
    knows = bool(write) and between > 0 and job.place is not CheckpointPlace.NONE
    rate = math.fsum(rate.dollars for rate in option.rates) / len(option.rates)
    least = rate * run.least_hours + (option.storage or 0.0) * (run.least_hours + option.loading)
    return Estimate(
        name=option.name,
        tenure=option.tenure,
        dollars_per_hour=rate,
        dollars_least=least + (option.per_gb or 0.0) * job.first_gb,
        dollars=outcome_spread.mean(dollars) if is_bounded else None,
        dollars_p90=outcome_spread.quantile(dollars),
        hours=hours_mean,
        hours_p90=outcome_spread.quantile(hours),
        interruptions=number,
        interval=None if job.place is CheckpointPlace.NONE else run.interval,
        young=checkpoints.young(write, 1 / between) if write and knows else None,
        daly=checkpoints.daly(write, 1 / between) if write and knows else None,
        by_age=_by_age(write, between) if write and knows and option.tenure is Tenure.INTERRUPTIBLE else (),
        storage_dollars=_times(option.storage, hours_mean),
        transfer_dollars=_times(option.per_gb, None if number is None else job.first_gb + number * job.moved_gb),
        late=None if job.deadline is None else 1.0 - outcome_spread.at_most(hours, job.deadline),
        as_of=option.as_of,
        cited=option.cited,
        unknown=(*option.unknown, *unknown),
        limit_dollars_per_hour=None if option.limit is None else option.limit.dollars,
        margin_dollars_per_hour=None if option.limit is None else option.limit.dollars - rate,
    )


def of_baseline(job: Job, figure: Baseline) -> Estimate:
    """Return the cost of a job at a published price: by arithmetic alone, without interruptions.

    If a range was published, its least price is expected and its highest is the 90th percentile. The interruptions of
    interruptible capacity there are unknown, so it has only the dollars of a run without any. A reservation is paid for
    its whole term; if that is unknown, so are the dollars.
    """
    quote = figure.quote(job.gpus)
    is_held = figure.tenure is not Tenure.INTERRUPTIBLE
    hours = job.work
    paid = _paid_hours(hours, figure)
    is_priced = is_held and paid is not None
    seconds = (hours if paid is None else paid) * 3600
    unknown = [
        "storage and transfer there are not known and not counted",
        "no interruption is assumed" if is_held else "how often it is interrupted there is not known",
    ]
    if quote.most > quote.least:
        unknown.append("a range was published: expected at its least, nine in ten at its most")
    if quote.billed_gpus > job.gpus:
        unknown.append(f"sold in nodes: {quote.billed_gpus} GPUs are billed")
    if figure.tenure is Tenure.RESERVED:
        unknown.append(_term(figure, paid))
    return Estimate(
        name=figure.name,
        tenure=figure.tenure,
        dollars_per_hour=quote.least.dollars,
        dollars_least=quote.least.over(seconds).dollars,
        dollars=quote.least.over(seconds).dollars if is_priced else None,
        dollars_p90=quote.most.over(seconds).dollars if is_priced else None,
        hours=hours if is_held else None,
        hours_p90=hours if is_held else None,
        interruptions=0.0 if is_held else None,
        interval=None,
        young=None,
        daly=None,
        by_age=(),
        storage_dollars=None,
        transfer_dollars=None,
        late=float(hours > job.deadline) if is_held and job.deadline is not None else None,
        as_of=figure.dated,
        cited=(quote.cited,),
        unknown=tuple(unknown),
    )


def _paid_hours(hours: float, figure: Baseline) -> float | None:
    """Return the hours that are paid for: whole terms of a reservation, None if its term is unknown."""
    if figure.tenure is not Tenure.RESERVED:
        return hours
    return None if figure.term_days is None else math.ceil(hours / (24 * figure.term_days)) * 24.0 * figure.term_days


def _term(figure: Baseline, paid: float | None) -> str:
    if paid is None:
        return "reserved for a term that is not known: what the term costs beyond the job is not counted"
    return f"reserved for {figure.term_days} days: {paid:g} h are paid for, used or not"


def _by_age(write: float, between: float) -> tuple[tuple[float, float], ...]:
    """Return the best interval by Young from each age of a lease on, as (age, interval) in hours."""
    shape = hazards.SHIPPED.shape
    return tuple((age, checkpoints.young(write, 1 / (between * times))) for age, times in shape)


def _run(job: Job, hazard: Hazard) -> tuple[Run, tuple[str, ...]]:
    """Return the run, and the assumptions about it."""
    write = job.write or 0.0
    if job.place is CheckpointPlace.NONE:
        return Run(job.work, job.work, 0.0, job.restore), ()
    if job.interval is not None:
        unknown = () if job.write is not None else ("how long a checkpoint takes is not known, taken as nothing",)
        return Run(job.work, min(job.interval, job.work), write, job.restore), unknown
    if write and hazard.mean:
        best = checkpoints.daly(write, 1.0 / hazard.mean)
        return Run(job.work, min(best, job.work), write, job.restore), ()
    unknown = (
        ()
        if job.write is not None
        else ("how often checkpoints are made is not known, taken as every 15 minutes and for nothing",)
    )
    return Run(job.work, min(ASSUMED_INTERVAL, job.work), write, job.restore), unknown


def _endless(run: Run, hazard: Hazard) -> str:
    return (
        f"the expectation is not known: {run.stretch + run.restore:.2f} h without a checkpoint, and the rate of "
        f"interruptions comes from a record of only {hazard.longest:.2f} h"
    )


def _cases(run: Run, option: Option, moved_gb: float, first_gb: float) -> Iterator[_Case | None]:
    storage, per_gb = option.storage or 0.0, option.per_gb or 0.0
    for hazard in option.hazard.cases:
        lost = losses(run, hazard) if hazard > 0 else NOTHING
        for rate in option.rates:
            if lost is None:
                yield None
                continue
            wall = run.least_hours + option.loading
            each = lost.hours_each * rate.dollars + storage * (lost.hours_each + option.down) + per_gb * moved_gb
            hourly = rate.dollars + storage
            yield _Case(
                _compound(rate.dollars * run.least_hours + storage * wall + per_gb * first_gb, lost, each, hourly),
                _compound(wall, lost, lost.hours_each + option.down, 1.0),
                lost.number,
            )


def _compound(least: float, lost: Losses, each: float, per_hour: float) -> outcome_spread.Case:
    """Return a sum that grows by `each` on average with every interruption; its lost hours vary, at `per_hour`.

    Source: mean and variance of a compound sum (Ross, Introduction to Probability Models, section 3.4).
    """
    variance = lost.number * per_hour**2 * lost.hours_each_variance + lost.number_variance * each**2
    return outcome_spread.Case(least, lost.number * each, variance, lost.none)


def _times(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one * other
