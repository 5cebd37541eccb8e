"""Decisions of `hedged` over sixteen pools, and the tables of costs that they look at.

The pools are drawn here: the regimes that the kernel assumes, four regions, prices that drift by 2 % a day; nothing
recorded. Tables are forgotten before each job.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from agent.decide.deadline import multi_pool_dp, regimes
from agent.lab.jobs import pool_place, tick_engine
from agent.lab.jobs.job_terms import HOUR, Course, Flags, JobCase, Terms, Window
from agent.lab.pools import own_kernel
from tests.bench import report

POOLS, REGIONS = 16, ("east", "north", "south", "west")
TICK, WORK, ALLOWED, OVERHEAD = 600, 48, 70, 720
SEEDS = (1, 2, 3)
DRIFT = 0.002
MOST_FIRST, MOST_MEGABYTES = 2.0, 256
WANTED = 0.020
KNOWN = regimes.SHIPPED


@dataclass(slots=True)
class Timed:
    """A policy that measures each choice, in seconds of CPU."""

    policy: tick_engine.Policy
    seconds: list[float] = field(default_factory=list)
    most_bytes: int = 0

    def choose(self, sight: tick_engine.Sight, /) -> tick_engine.Choice:
        """Return the policy's choice."""
        began = time.process_time()
        chosen = self.policy.choose(sight)
        self.seconds.append(time.process_time() - began)
        self.most_bytes = max(self.most_bytes, multi_pool_dp.tables.size)
        return chosen


def measure() -> bool:
    """Print the first decision of a job, the later ones, and the tables; return whether the bounds hold."""
    print(f"{POOLS} pools: {WORK} h of work, {ALLOWED} h allowed, a decision every {TICK // 60} min, {len(SEEDS)} jobs")
    jobs = [_played(drawn(seed)) for seed in SEEDS]
    first = max(job.seconds[0] for job in jobs)
    later = np.concatenate([job.seconds[1:] for job in jobs])
    megabytes = max(job.most_bytes for job in jobs) / 1e6
    half, most = np.quantile(later, (0.5, 0.99)) * 1000
    slow = f"{(later > WANTED).mean():.1%} take over {WANTED * 1000:.0f} ms"
    report.line(f"{len(later):,} later decisions", f"p50 {half:.1f} ms; p99 {most:.0f} ms", slow)
    is_quick = report.line(
        "the first decision of a job", f"{first:.2f} s", f"at most {MOST_FIRST:.0f} s", holds=first <= MOST_FIRST
    )
    is_small = report.line(
        "its tables", f"{megabytes:.0f} MB", f"at most {MOST_MEGABYTES} MB", holds=megabytes <= MOST_MEGABYTES
    )
    return is_quick and is_small


def _played(over: JobCase) -> Timed:
    multi_pool_dp.tables.clear()
    timed = Timed(own_kernel.Wander(over.terms))
    tick_engine.play(over, timed)
    return timed


def drawn(seed: int) -> JobCase:
    """Return a job over pools that come and go."""
    lots, count = np.random.default_rng(seed), ALLOWED * HOUR // TICK + 1
    up = np.array([list(_pool(lots, count)) for _ in range(POOLS)]).T
    steps = lots.normal(0.0, DRIFT, up.shape).cumsum(axis=0)
    names = tuple(f"us-{REGIONS[pool % len(REGIONS)]}1-{'abcd'[pool // len(REGIONS)]}" for pool in range(POOLS))
    terms = Terms(names, TICK, WORK * HOUR, ALLOWED * HOUR, OVERHEAD, pool_place.egress(names, 50, 0.02))
    return JobCase("drawn", "drawn", "drawn", terms, _window(names, up, lots.uniform(0.8, 1.6, POOLS) * np.exp(steps)))


def _window(names: tuple[str, ...], up: Flags, spot: regimes.Array) -> Window:
    return Window(names, TICK, 0, Course(up, spot, np.full(up.shape, 3.06)))


def _pool(lots: np.random.Generator, count: int) -> Iterator[bool]:
    """Yield whether a pool has capacity, tick by tick."""
    hours, regime = TICK / HOUR, int(lots.choice(KNOWN.count, p=KNOWN.prior))
    is_up, age = bool(lots.random() < 0.5), regimes.FIRST_AGE
    for _ in range(count):
        yield is_up
        regime = int(lots.choice(KNOWN.count, p=KNOWN.turns(hours)[regime]))
        state = (regimes.UP if is_up else regimes.DOWN) + (age >= KNOWN.young_hours)
        ends = bool(lots.random() < KNOWN.chances(state, hours)[regime])
        is_up, age = is_up is not ends, 0.0 if ends else age + hours
