"""Deadline jobs over real HTTP: none is late that on-demand from the start would meet; a cap alerts before it bites."""

import dataclasses
import datetime as dt
import random
from pathlib import Path

import pytest

from agent import strategy_files
from agent.decide.limits.limits import Limits
from agent.domain import money
from agent.domain.market import gpu
from agent.domain.market.tenure import Tenure
from agent.domain.work.deadline import Deadline, ProgressSign
from agent.domain.work.order import Order
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Requirements, Workload, WorkloadKind
from agent.lab.engine.lab_job import Job
from agent.simulator import climate_files
from agent.simulator.instances.container_state import Container
from strategies.deadline import Deadline as DeadlineStrategy
from strategies.deadline import DeadlineParams
from tests.support import builders
from tests.support.world import START, Rehearsed, Scene, rehearsed, work

JOBS = 20
CHECKPOINT = Checkpoint(dt.timedelta(minutes=10), dt.timedelta(seconds=60), 0.0, CheckpointPlace.REMOTE)
POLL = dt.timedelta(minutes=1)


@dataclasses.dataclass(frozen=True, slots=True)
class Drawn:
    """A job: so many hours of work within so many hours, in a climate under a seed."""

    seed: int
    climate: str
    hours: float
    allowed: float

    @property
    def by(self) -> dt.datetime:
        """The deadline."""
        return START + dt.timedelta(hours=self.allowed)


def drawn(number: int) -> Drawn:
    lots = random.Random(f"http-{number}")
    hours = lots.uniform(0.5, 2.0)
    allowed = hours * lots.choice((1.1, 1.5, 2.5)) + lots.uniform(0.7, 1.5)
    return Drawn(number, lots.choice(("bidding_war", "price_spike", "calm")), hours, allowed)


def workload(job: Drawn, strategy: str) -> Workload:
    wants = Requirements(gpus=1, gpu_models=(gpu.model("RTX 4090"),), verified_only=False)
    return work(
        kind=WorkloadKind.BATCH,
        strategy=strategy,
        requirements=wants,
        max_price=money.per_hour("1.2"),
        checkpoint=CHECKPOINT,
        deadline=Deadline(job.hours, job.by),
    )


def observe(world: Rehearsed, job: Job, running: dict[int, float]) -> None:
    """Let the job run where the market's own truth says that its container runs."""
    now = world.clock.now()
    seen = {
        contract.contract_id: contract.running_since
        for contract in world.contracts()
        if contract.container is Container.RUNNING and contract.holds_gpu and contract.running_since is not None
    }
    for key, since in list(running.items()):
        if seen.get(key) != since:
            job.stop(str(key), now)
            del running[key]
    for key, since in seen.items():
        if key not in running and since is not None:
            running[key] = since
            job.start(str(key), dt.datetime.fromtimestamp(since, dt.UTC), 1.0)
    job.advance(now)


async def lived(place: Path, job: Drawn, strategy: str) -> tuple[dt.datetime | None, set[Tenure]]:
    """Return when a job was done under a strategy, and its leases."""
    scene = Scene(
        climate=climate_files.named(job.climate),
        seed=job.seed,
        hosts=200,
        workloads=(workload(job, strategy),),
        tuned=strategy_files.load(),
    )
    place.mkdir()  # noqa: ASYNC240 - a test may make its own folder
    async with rehearsed(place, scene, is_wired=True) as world:
        world.config = dataclasses.replace(world.config, poll=POLL)
        work_ = Job(job.hours, CHECKPOINT.interval, CHECKPOINT.restore)
        running: dict[int, float] = {}
        until = job.by + dt.timedelta(hours=2)
        while work_.done_at is None and world.clock.now() < until:
            await world.cycle()
            observe(world, work_, running)
            told = [work_.printed_hours(str(key), world.clock.now()) for key in running]
            for hours in told[:1]:
                if hours is not None:
                    await world.app.say(Order("progress", "train", hours=hours), "the job itself")
        return work_.done_at, {lease.tenure for lease in await world.past_leases()}


async def is_avoidably_late(place: Path, number: int) -> bool:
    """Return whether a job was late although on-demand from its start would have been in time."""
    job = drawn(number)
    done_at, _ = await lived(place / f"deadline-{number}", job, "deadline")
    if done_at is not None and done_at <= job.by:
        return False
    base, _ = await lived(place / f"ondemand-{number}", job, "ondemand")
    return base is not None and base <= job.by


@pytest.mark.parametrize("number", [0, 7])
async def test_a_job_is_not_late_where_on_demand_is_not(tmp_path: Path, number: int) -> None:
    assert not await is_avoidably_late(tmp_path, number)


@pytest.mark.nightly
async def test_twenty_jobs_are_not_late_where_on_demand_is_not(tmp_path: Path) -> None:
    assert [number for number in range(JOBS) if await is_avoidably_late(tmp_path, number)] == []


async def test_a_cap_that_collides_with_a_deadline_is_told_before_it_bites(tmp_path: Path) -> None:
    job = Drawn(3, "calm", 3.0, 6.0)
    caps = Limits(per_day=money.usd("0.30"))
    scene = Scene(workloads=(workload(job, "deadline"),), tuned=strategy_files.load(), limits=caps)
    async with rehearsed(tmp_path, scene, is_wired=True) as world:
        await world.cycle(minutes=3)
        [told] = await world.events("alert.deadline_at_risk")
        assert "is at risk by per_day" in told.reason
        assert await world.spend() < 0.05, "it was told after the money was gone"
        await world.cycle(minutes=10)
        assert len(await world.events("alert.deadline_at_risk")) == 1, "it is told once"


async def test_progress_survives_a_restart_and_is_explained(tmp_path: Path) -> None:
    job = Drawn(3, "calm", 10.0, 100.0)
    scene = Scene(workloads=(workload(job, "deadline"),), tuned=strategy_files.load())
    async with rehearsed(tmp_path, scene, is_wired=True) as world:
        await world.until_running()
        await world.app.say(Order("progress", "train", hours=4.0), "ops")
        await world.restart(60.0)
        done = await world.cycle(minutes=1)
        (made,) = done.plan.decisions
        assert "6.00 h of work left, slack" in made.reason.sentence
        assert world.app.ledger.recollection().progress["train"].hours == 4.0


async def test_a_line_of_the_log_tells_how_far_the_work_is(tmp_path: Path) -> None:
    job = Drawn(3, "calm", 10.0, 100.0)
    wanted = Deadline(job.hours, job.by, sign=ProgressSign.LOG, line="hours done: {hours}")
    told = (("SIM_READY_LINE", "step 900, hours done: 1.5"),)
    telling = dataclasses.replace(workload(job, "deadline"), deadline=wanted, environment=told)
    async with rehearsed(tmp_path, Scene(workloads=(telling,), tuned=strategy_files.load()), is_wired=True) as world:
        await world.until_running()
        await world.cycle(minutes=5)
        known = world.app.ledger.recollection().progress["train"]
        assert (known.hours, known.source) == (1.5, "log")
        assert known.lease_id == world.lease().lease_id


async def test_the_speed_of_the_reference_survives_a_restart(tmp_path: Path) -> None:
    """A slot that runs is not searched for at the start, so nothing else shows how fast the reference is."""
    job, reference = Drawn(3, "calm", 10.0, 100.0), gpu.model("RTX 3090")
    wants = Requirements(gpus=1, gpu_models=(gpu.model("RTX 4090"), reference), verified_only=False)
    waiting = dataclasses.replace(workload(job, "deadline"), requirements=wants)
    counted = dataclasses.replace(waiting, deadline=Deadline(job.hours, job.by, reference_gpu=reference))
    scene = Scene(workloads=(counted,), tuned=strategy_files.load(), hosts=200)
    async with rehearsed(tmp_path, scene) as world:
        before = await world.cycle()
        seen = {key: each for key, each in before.fleet.typical.items() if key[0] == reference}
        assert list(seen) == [(reference, 1)]
        await world.until_running()
        world.weather("server_error_before", route="* /bundles")
        await world.restart(60.0)
        after = await world.cycle()
        assert after.fleet.markets["vast"].offers == ()
        assert after.fleet.typical[reference, 1] == pytest.approx(seen[reference, 1], rel=0.05)


async def test_prices_are_looked_up_in_time_for_a_start_of_two_hours(tmp_path: Path) -> None:
    """The work stands still, so the last call comes at a known time: soon after a survey, long before the next."""
    job = Drawn(3, "calm", 2.0, 7.4)
    tuned = builders.tuned(DeadlineStrategy(), DeadlineParams(start_delay=dt.timedelta(hours=2)), "deadline")
    scene = Scene(workloads=(workload(job, "deadline"),), tuned={"deadline": tuned})
    async with rehearsed(tmp_path, scene) as world:
        lease = await world.until_running()
        assert lease.tenure is Tenure.INTERRUPTIBLE
        await world.until(lambda: any(each.tenure is Tenure.ON_DEMAND for each in world.leases()), minutes=240.0)
        left = (job.by - world.clock.now()) / dt.timedelta(hours=1)
        assert left > job.hours + 2.0, "the start is in time"
