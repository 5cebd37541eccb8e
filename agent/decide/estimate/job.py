"""A job to estimate, and how often it must run until it succeeds."""

import math
from dataclasses import dataclass

from agent.decide.estimate.outcome_spread import NINE_IN_TEN
from agent.domain.market.gpu import GpuModel
from agent.domain.work.workload import CheckpointPlace


@dataclass(frozen=True, slots=True)
class Reruns:
    """The cost of all runs as a multiple of one run's: from `least` to `most`; `mean` only if odds were given."""

    least: float = 1.0
    most: float = 1.0
    mean: float | None = 1.0


def by_odds(success: float) -> Reruns:
    """Return the runs until one succeeds, if each succeeds with this chance and costs as much as a whole run.

    Tries are geometric: 1 / p on average, and nine in ten jobs need at most ln(0.1) / ln(1 - p) of them, rounded up.
    """
    if success >= 1.0:
        return Reruns()
    most = math.ceil(math.log1p(-NINE_IN_TEN) / math.log1p(-success) - 1e-9)
    return Reruns(1.0, float(max(most, 1)), 1.0 / success)


@dataclass(frozen=True, slots=True)
class Job:
    """The work in hours of useful work on these GPUs, and how its checkpoints are made.

    None means unknown: `interval` then follows from `write`, or is the assumed one. `deadline` counts from the start.
    The first host downloads image and dataset; each further host also downloads the checkpoint.
    """

    gpu: GpuModel
    gpus: int
    work: float
    interval: float | None = None
    write: float | None = None
    restore: float = 60.0 / 3600
    place: CheckpointPlace = CheckpointPlace.REMOTE
    checkpoint_gb: float = 0.0
    image_gb: float = 5.0
    dataset_gb: float = 0.0
    disk_gb: float = 20.0
    deadline: float | None = None
    reruns: Reruns = Reruns()

    @property
    def first_gb(self) -> float:
        """Gigabytes downloaded at its start."""
        return self.image_gb + self.dataset_gb

    @property
    def moved_gb(self) -> float:
        """Gigabytes downloaded after an interruption; none if the checkpoint is on the disk, which is still there."""
        if self.place is CheckpointPlace.DISK:
            return 0.0
        return self.first_gb + (self.checkpoint_gb if self.place is CheckpointPlace.REMOTE else 0.0)
