"""The cost of a useful hour: price, storage, traffic, loading, and the expected loss of an interruption.

Theory: renewal-reward over one stay on a host. A stay ends at a loss or at the horizon T. With survival S its expected
length is L, the integral of S up to T, and it ends in a loss with probability q = 1 - S(T). Of L hours the restore and,
on a loss, half a checkpoint interval are not useful. Interval/2 is the mean of a uniform instant between two
checkpoints (Young, CACM 17(9), 1974). The host's own failures come at a constant rate. The rate at which the market
takes a host is unknown and has a Gamma distribution. A stay that has lasted is probably on a calmer host. So a stay
that the market ends is Lomax, and its hazard falls with age (Johnson, Kotz & Balakrishnan, Continuous Univariate
Distributions 1, 2nd ed., section 20.11).

Invariants:
1. Figures here are estimates in dollars and hours, never paid sums.
2. The cost rises with the price, the storage rate, the hazard and the loading time, all else equal.
"""

import math
from collections.abc import Callable
from datetime import timedelta

import msgspec
import numpy as np

from agent.decide.pricing.gamma_distribution import Gamma
from agent.domain import money
from agent.domain.market import offer, tenure
from agent.domain.market.host import HostRecord
from agent.domain.work import workload
from agent.domain.work.decision import Term

HORIZON_HOURS = 24.0
"""The length of the calculated stay: a day, or a task of an array that takes less. A shorter one favours hosts that
load fast over hosts that stay cheap."""

MARKET_HAZARD_PRIOR = (1.8, 12.0)
"""Gamma prior of losing an interruptible lease to the market, as (losses, hours): 0.15 an hour. Assumed: users of such
markets report 0.1 to 0.5 an hour. It weighs half a day. With less, a bad first hour on one host would count for the
whole market: on-demand would be rented, and nothing more be learned."""

CONTEST_PRIOR_HOURS = 2.0
"""Weight of the market's rate of losses against a host's own, in hours. Assumed: demand differs widely between hosts,
so a few hours on a host show more than the market's rate."""

HOST_PRIOR_HOURS = 24.0
"""Weight of a host's advertised reliability, in hours of record. Assumed; a week of own hours outweighs it."""

OUTAGE_HOURS = 2.0
"""Mean length of a host outage. It converts an advertised share of uptime into failures an hour. Assumed."""

START_PRIOR = (9.0, 1.0)
"""Beta prior of a successful start, as (successes, failures). Assumed; half of one user's starts failed."""

LOADING_PRIOR_GB = 5.0
"""Weight of the advertised bandwidth, in gigabytes of images: about one image. Assumed."""

CONTAINER_SECONDS = 30.0
"""From a pulled image to a running container. Assumed."""

LEAST_DLPERF = 1e-6
"""DLPerf of a host without a benchmark: it ranks last, and nothing is divided by zero."""
_HOUR = timedelta(hours=1)
_POINTS = tuple((float(at), float(weight)) for at, weight in zip(*np.polynomial.legendre.leggauss(16), strict=True))
"""Gauss-Legendre points and weights on [-1, 1]."""
_NO_HAZARD = 1e-9
"""Below this 1 - exp(-x) is x to the last digit that matters."""


class Way(msgspec.Struct, frozen=True):
    """A way to hold an offer: its tenure and its GPUs' price per hour. `hazard_scale` scales the market's hazard."""

    tenure: tenure.Tenure
    rate: money.UsdPerHour
    """The bid or the ask; under a limit the expected price."""
    hazard_scale: float = 1.0
    limit: money.UsdPerHour | None = None
    """The bid where the price paid is not the bid; None elsewhere."""
    worth: money.UsdPerHour | None = None
    """What a useful hour on the offer is worth, if there is a limit."""
    is_waiting: bool = False
    """Whether the limit is below every price that is known to win, so that no price is expected."""

    @property
    def bid(self) -> money.UsdPerHour:
        """The bid or the ask."""
        return self.rate if self.limit is None else self.limit

    @property
    def under_limit(self) -> str:
        """The limit and its margin over the expected price, in words that follow the price; empty without a limit."""
        if self.limit is None:
            return ""
        return f" expected under a limit of {self.limit}, {self.limit - self.rate} more"


class StayCost(msgspec.Struct, frozen=True):
    """The expected cost and yield of a stay, in dollars and hours."""

    gpu_dollars: float
    disk_dollars: float
    traffic_dollars: float
    idle_dollars: float
    """The loading time at what an hour of the work is worth. It is not paid."""
    loading_hours: float
    restore_hours: float
    lost_hours: float
    """The expected work that a loss at the end of the stay makes useless."""
    useful_hours: float
    hazard: float
    """Losses per hour of the stay."""
    dlperf: float
    """The DLPerf of the whole offer, after measurements."""
    speed: float = 1.0
    """The share of the promised DLPerf that is left after measurements."""
    egress_dollars: float = 0.0
    """The price of the checkpoints that leave the cloud during the stay."""

    @property
    def dollars(self) -> float:
        """The expected cost of the whole stay, with idle time at what an hour of the work is worth."""
        return self.gpu_dollars + self.disk_dollars + self.traffic_dollars + self.egress_dollars + self.idle_dollars

    @property
    def per_useful_hour(self) -> float:
        """Dollars per useful hour."""
        return self.dollars / self.useful_hours

    @property
    def per_useful(self) -> float:
        """Dollars per useful DLPerf-hour; the score is its inverse."""
        return self.dollars / (self.useful_hours * self.dlperf)

    @property
    def score(self) -> float:
        """Expected DLPerf-hours of useful work per dollar."""
        return 1.0 / self.per_useful

    def by(self, checkpoint: workload.Checkpoint) -> "StayCost":
        """Return the same stay with the restore of `checkpoint`, if that is longer than its own."""
        if checkpoint.restore / _HOUR <= self.restore_hours:
            return self
        hours = self.restore_hours + self.lost_hours + self.useful_hours
        restore, lost, useful = _parts(hours, self.hazard * hours, *_spans(checkpoint))
        return msgspec.structs.replace(self, restore_hours=restore, lost_hours=lost, useful_hours=useful)

    def terms(self) -> tuple[Term, ...]:
        """Return every figure with its name and unit, for explanations."""
        return (
            Term("gpu", self.gpu_dollars, "$"),
            Term("disk", self.disk_dollars, "$"),
            Term("traffic", self.traffic_dollars, "$"),
            *((Term("checkpoints out of the cloud", self.egress_dollars, "$"),) if self.egress_dollars else ()),
            Term("idle while loading", self.idle_dollars, "$"),
            Term("loading", self.loading_hours, "h"),
            Term("restore", self.restore_hours, "h"),
            Term("work lost", self.lost_hours, "h"),
            Term("useful", self.useful_hours, "h"),
            Term("interruptions", self.hazard, "/h"),
            Term("per useful hour", self.per_useful_hour, "$/h"),
            *((Term("measured speed", self.speed, "of its DLPerf"),) if self.speed < 1.0 else ()),
            Term("score", self.score, "DLPerf h/$"),
        )


def stay(hazard: float, horizon_hours: float) -> tuple[float, float]:
    """Return (expected hours of a stay, probability that it ends in a loss) for a hazard per hour.

    Source: mean and distribution function of an exponential lifetime cut at the horizon.
    """
    exponent = hazard * horizon_hours
    if exponent < _NO_HAZARD:
        return horizon_hours, exponent
    loss = -math.expm1(-exponent)
    return loss / hazard, loss


def lasting(hazard: float, contest: Gamma, horizon_hours: float) -> tuple[float, float]:
    """Return (expected hours of a stay, probability that it ends in a loss) of a bid on a host with its own hazard.

    `contest` is the distribution of the rate at which the market takes the host. Survival is exp(-ht) (1 + t / weight)
    ** -shape, the mean of exp(-rate t) over it. The integral is Gauss-Legendre's in log(1 + t / weight), where the
    survival is smooth; a test compares it with the exact integral.
    """
    scale, shape = contest.weight, contest.shape
    end = math.log1p(horizon_hours / scale)
    hours = 0.0
    for point, weight in _POINTS:
        at = end / 2 * (point + 1.0)
        hours += weight * math.exp(at * (1.0 - shape) - hazard * scale * math.expm1(at))
    return hours * scale * end / 2, -math.expm1(-shape * end - hazard * horizon_hours)


def host_hazard(reliability: float, record: HostRecord | None) -> float:
    """Return failures per hour of a host: the posterior mean of a Gamma prior under Poisson events.

    The prior mean is the rate that the advertised share of uptime implies if an outage lasts `OUTAGE_HOURS`. Its weight
    is `HOST_PRIOR_HOURS`. Losses to the market do not count as the host's. Source: Gamma-Poisson conjugacy (Gelman et
    al., Bayesian Data Analysis, 3rd ed., section 2.6).
    """
    up = min(max(reliability, 0.5), 0.9999)
    prior = (1.0 - up) / (up * OUTAGE_HOURS)
    if record is None:
        return prior
    troubles = max(record.interruptions - record.market_losses, 0.0)
    return (prior * HOST_PRIOR_HOURS + troubles) / (HOST_PRIOR_HOURS + record.running_seconds / 3600)


def market_hazard(losses: float, hours: float) -> float:
    """Return losses to the market per hour over the fleet's own interruptible record, a posterior mean."""
    prior_losses, prior_hours = MARKET_HAZARD_PRIOR
    return (prior_losses + losses) / (prior_hours + hours)


def contested(record: HostRecord | None, market_loss_rate: float) -> Gamma:
    """Return the rate at which the market takes one host: the market's own rate, corrected by the host's record."""
    prior = market_loss_rate * CONTEST_PRIOR_HOURS
    if record is None:
        return Gamma(prior, CONTEST_PRIOR_HOURS)
    hours = max(record.bid_seconds, 0.0) / 3600
    return Gamma(prior + max(record.market_losses, 0.0), CONTEST_PRIOR_HOURS + hours)


def contested_hazard(record: HostRecord | None, market_loss_rate: float) -> float:
    """Return losses to the market per hour on one host, a posterior mean."""
    return contested(record, market_loss_rate).mean


def start_success(record: HostRecord | None) -> float:
    """Return the chance that a start on a host succeeds: posterior mean of a Beta prior (same source, section 2.4)."""
    successes, failures = START_PRIOR
    if record is not None:
        successes, failures = successes + record.starts_ok, failures + record.starts_failed
    return successes / (successes + failures)


def loading_hours(image_gb: float, inet_down_mbps: float, record: HostRecord | None = None) -> float:
    """Return hours to pull an image of `image_gb` gigabytes over `inet_down_mbps` megabits a second and start it.

    Measured times of our own images on that host weigh against its advertised speed, gigabyte for gigabyte.
    """
    advertised = 8000.0 / max(inet_down_mbps, 1.0)
    if record is None or record.loaded_gb <= 0:
        return (image_gb * advertised + CONTAINER_SECONDS) / 3600
    weighed = LOADING_PRIOR_GB * advertised + max(record.loading_seconds, 0.0)
    return (image_gb * weighed / (LOADING_PRIOR_GB + record.loaded_gb) + CONTAINER_SECONDS) / 3600


def stay_cost(
    candidate: offer.Offer,
    work: workload.Workload,
    record: HostRecord | None,
    market_loss_rate: float,
    speed: float = 1.0,
) -> Callable[[Way], StayCost]:
    """Return the expected cost and yield of a stay on `candidate`, by the way in which it is held.

    Loading time is charged at what an hour of the work is worth. Terms that all ways share are calculated once. `speed`
    is the share of its DLPerf that is left after measurements, at most 1.
    """
    own_hazard = host_hazard(candidate.reliability, record)
    contest = contested(record, market_loss_rate)
    tries = 1.0 / start_success(record)
    # The restore that the workload promises includes the checkpoint's download, but not a dataset's.
    loading = loading_hours(work.image_gb + work.dataset_gb, candidate.inet_down_mbps, record) * tries
    longest_restore, unsaved = _spans(work.checkpoint)
    traffic = work.moved_gb * tries * candidate.traffic_down_micros_per_gb / money.MICROS
    disk, idle = candidate.disk_rate(work.disk_gb).dollars, work.value_of(candidate.gpu).dollars * loading
    egress = uploaded_gb_an_hour(work.checkpoint) * candidate.egress_micros_per_gb / money.MICROS
    horizon = horizon_hours(work)
    dlperf = max(candidate.dlperf * speed, LEAST_DLPERF)

    def reckoned(way: Way) -> StayCost:
        """Return the expected cost and yield of a stay held this way."""
        if way.tenure is tenure.Tenure.INTERRUPTIBLE:
            hours, loss = lasting(own_hazard, contest.scaled(max(way.hazard_scale, _NO_HAZARD)), horizon)
        else:
            hours, loss = stay(own_hazard, horizon)
        restore, lost, useful = _parts(hours, loss, longest_restore, unsaved)
        return StayCost(
            gpu_dollars=way.rate.micros / money.MICROS * hours,
            disk_dollars=disk * (hours + loading),
            traffic_dollars=traffic,
            idle_dollars=idle,
            loading_hours=loading,
            restore_hours=restore,
            lost_hours=lost,
            useful_hours=useful,
            hazard=loss / hours,
            dlperf=dlperf,
            speed=speed,
            egress_dollars=egress * hours,
        )

    return reckoned


def horizon_hours(work: workload.Workload) -> float:
    """Return the hours of the calculated stay: a day, or one task of an array if the file says how long that takes.

    A short task pays its image and its traffic by itself. A host that is kept goes on with other tasks.
    """
    hours = work.array.task_hours if work.array is not None else None
    if hours is None or (work.guard is not None and work.guard.keep_host):
        return HORIZON_HOURS
    return min(hours + work.checkpoint.restore / _HOUR, HORIZON_HOURS)


def uploaded_gb_an_hour(checkpoint: workload.Checkpoint) -> float:
    """Return the gigabytes of checkpoints that leave a host in an hour: every checkpoint in full, 0 without a bucket.

    Work that loses nothing has no interval, and the size of its checkpoints is unknown.
    """
    is_remote = checkpoint.place is workload.CheckpointPlace.REMOTE and checkpoint.interval > timedelta()
    return checkpoint.size_gb * _HOUR / checkpoint.interval if is_remote else 0.0


def _spans(checkpoint: workload.Checkpoint) -> tuple[float, float]:
    """Return the hours of a restore, and the hours of work at stake at the end of a stay."""
    is_none = checkpoint.place is workload.CheckpointPlace.NONE
    return checkpoint.restore / _HOUR, HORIZON_HOURS if is_none else checkpoint.interval / _HOUR


def _parts(hours: float, loss: float, longest_restore: float, unsaved: float) -> tuple[float, float, float]:
    """Return the hours of a stay that are (restored, lost, useful); `loss` is the probability that it ends in one."""
    restore = min(longest_restore, 0.9 * hours)
    # At most half of the possible useful time: without checkpoints the whole stay is at stake.
    lost = loss * min(unsaved, hours - restore) / 2
    return restore, lost, max(hours - restore - lost, 1e-6)


def useful_share(checkpoint: workload.Checkpoint, hazard: float) -> float:
    """Return the useful share of a stay that is lost to the market at a rate per hour; its restore is over."""
    hours, loss = stay(hazard, HORIZON_HOURS)
    return _parts(hours, loss, 0.0, _spans(checkpoint)[1])[2] / hours


def least_per_dlperf(candidate: offer.Offer) -> float:
    """Return a lower bound on dollars per useful DLPerf-hour of an offer, for any workload and any way to hold it.

    It is the cheaper of ask and floor per DLPerf. Every other term of `stay_cost` only adds dollars or removes useful
    hours. An offer of unknown price may cost nothing.
    """
    if candidate.is_price_unknown:
        return 0.0
    ask, floor = candidate.ask, candidate.floor
    if ask is None:
        least = math.inf if floor is None else floor.micros
    else:
        least = ask.micros if floor is None else min(ask.micros, floor.micros)
    return least / money.MICROS / max(candidate.dlperf, LEAST_DLPERF)
