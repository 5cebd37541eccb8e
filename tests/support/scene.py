"""The settings of a rehearsed world: climate, seed, workloads, limits, strategies."""

import dataclasses
import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.act import rent_terms
from agent.config.front_settings import Front
from agent.decide.limits.limits import Limits
from agent.decide.strategy import Tuned
from agent.domain import money
from agent.domain.market import gpu
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Requirements, Workload
from agent.simulator.climate import Climate, Demand
from agent.simulator.vast.http.call_gate import Gate
from strategies.ondemand import OnDemand, OnDemandParams
from strategies.patient import Patient, PatientParams
from tests.support.wiring import IS_NIGHT

START = dt.datetime(2026, 7, 27, tzinfo=dt.UTC)
FLEET = "f1ee7f1ee7f1"
KEY = "simulated-key"
IMAGE = "pytorch/pytorch:latest"

STILL = Climate(
    name="still",
    demand=Demand(arrivals=0.0, taken=0.0, fight_back=0.0),
    price_walks_per_day=0.0,
    failures=0.0,
    pull_failure_probability=0.0,
)
"""A climate in which nothing happens except the test's own actions."""


def work(name: str = "train", **changes: Any) -> Workload:
    """Return a workload that fits some hosts of a still market."""
    wants = Requirements(gpus=1, gpu_models=(gpu.model("RTX 4090"), gpu.model("RTX 3090")), verified_only=False)
    made = Workload(
        name=name,
        image=IMAGE,
        max_price=money.per_hour("0.6"),
        strategy="patient",
        requirements=wants,
        disk_gb=40,
        image_gb=6.5,
        checkpoint=Checkpoint(place=CheckpointPlace.REMOTE, size_gb=2),
    )
    return dataclasses.replace(made, **changes)


def heavy(**changes: Any) -> Workload:
    """Return a workload whose image takes so long to load that a raised bid is cheaper than another host."""
    return work(image_gb=40, **changes)


def strategies(**params: Any) -> dict[str, Tuned]:
    """Return both strategies with their shipped numbers, and `patient` with these changes.

    A healthy lease is not left for a cheaper one unless a story asks for it, because stories are about their first
    lease.
    """
    numbers = {"leave_after": "never", **params}
    return {
        "patient": Tuned("patient", Patient(), PatientParams(**numbers), "test"),
        "ondemand": Tuned("ondemand", OnDemand(), OnDemandParams(), "test"),
    }


POLL = dt.timedelta(seconds=15)
"""The shipped poll, for stories about seconds."""
MINUTE = dt.timedelta(minutes=1)
"""The poll of stories that take hours: with the shipped one they have four times as many cycles, and prove no more."""
HOURS_POLL = POLL if IS_NIGHT else MINUTE
"""The poll of a world where a story names none: the shipped one at night alone."""
PROPERTY_POLL = POLL if IS_NIGHT else 3 * MINUTE
"""The poll of worlds that a property draws: their cycles are most of the processor time of the money rules."""
CENT_POLL = POLL if IS_NIGHT else 2 * MINUTE
"""The poll of properties whose bounds in cents leave no room for a longer one."""


@dataclasses.dataclass(frozen=True, slots=True)
class Scene:
    """The settings of a world. `gate` paces the calls; without it no call waits.

    `disks` is the folder of its containers' disks, if the climate has real processes.
    """

    climate: Climate = STILL
    seed: int = 9
    hosts: int = 60
    credit: float | None = None
    workloads: tuple[Workload, ...] = dataclasses.field(default_factory=lambda: (work(),))
    limits: Limits = Limits()
    may_spend: bool = True
    tuned: Mapping[str, Tuned] = dataclasses.field(default_factory=strategies)
    gate: Gate | None = None
    recording_bytes: int = 0
    log_bytes: int = 0
    start: dt.datetime = START
    poll: dt.timedelta = HOURS_POLL
    credential: rent_terms.Credential = rent_terms.none
    disks: Path | None = None
    fronts: tuple[Front, ...] = ()
