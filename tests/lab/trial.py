"""One deadline job over a market in memory, under one strategy: its end and its cost."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.decide.strategy import Tuned
from agent.domain.money import UsdPerHour
from agent.domain.work.deadline import Deadline, ProgressSign
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Requirements, Workload, WorkloadKind
from agent.lab.engine.engine import Engine
from agent.lab.engine.lab_job import Job
from agent.lab.engine.lookahead_check import GPU, LINE, START, STEP
from agent.lab.engine.memory_market import Exchange, Pool
from agent.lab.traces import course

GIVE_UP = 3.0
"""After so many times the allowed span a job that is not done counts as never done."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A drawn job: hours of work, hours until the deadline, its checkpoints, and the course and delays it meets."""

    seed: str
    hours: float
    allowed: float
    interval: timedelta
    restore: timedelta
    pool: Pool

    @property
    def by(self) -> datetime:
        """The deadline."""
        return START + timedelta(hours=self.allowed)


@dataclass(frozen=True, slots=True)
class Lived:
    """What became of a job under one strategy; `done_at` None was never done."""

    strategy: str
    done_at: datetime | None
    dollars: float
    losses: int
    starts: int

    def is_late(self, setting: Setting) -> bool:
        """Whether it was done after its deadline or never."""
        return self.done_at is None or self.done_at > setting.by


def drawn(seed: str, *, most_hours: float = 12.0) -> Setting:
    """Return a job drawn from a seed: tight and loose deadlines, short and long work, capacity good and bad."""
    lots = random.Random(f"{seed}/job")
    hours = lots.uniform(1.0, most_hours)
    interval = timedelta(minutes=lots.choice((5, 15, 30, 60)))
    allowed = hours * lots.choice((1.0, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0)) + lots.uniform(0.05, 1.0)
    up = course.Spells(lots.uniform(0.6, 1.1), lots.uniform(0.1, 1.0))
    down = course.Spells(lots.uniform(0.6, 1.1), lots.uniform(0.1, 1.0))
    path = course.drawn(seed, START, allowed * GIVE_UP, up=up, down=down)
    delays = course.Delays(median=lots.uniform(30.0, 500.0))
    return Setting(seed, hours, allowed, interval, timedelta(seconds=60), Pool(path, GPU, delays=delays))


def workload(setting: Setting, strategy: str) -> Workload:
    """Return the workload that a job is."""
    return Workload(
        name="job",
        image="lab",
        max_price=UsdPerHour(2 * setting.pool.course.ask.micros),
        strategy=strategy,
        requirements=Requirements(gpu_models=(GPU,)),
        image_gb=1.0,
        checkpoint=Checkpoint(setting.interval, setting.restore, 0.0, CheckpointPlace.REMOTE),
        kind=WorkloadKind.BATCH,
        deadline=Deadline(setting.hours, setting.by, GPU, sign=ProgressSign.LOG, line=LINE),
    )


def live(setting: Setting, strategy: str, tuned: Mapping[str, Tuned], step: timedelta = STEP) -> Lived:
    """Return what becomes of a job when a strategy looks at it every step."""
    job = Job(setting.hours, setting.interval, setting.restore)
    market = Exchange(setting.pool, setting.seed, START, job)
    engine = Engine(market, (workload(setting, strategy),), tuned, START)
    until = START + timedelta(hours=setting.allowed * GIVE_UP)
    while job.done_at is None and market.now < until:
        engine.cycle(market.now)
        market.advance(market.now + step)
    return Lived(strategy, job.done_at, market.dollars, market.losses, market.starts)
