"""A baseline: what GPUs cost elsewhere at a stated date by a stated source; compared with, never rented at."""

from dataclasses import dataclass

from agent.domain.market.gpu import GpuModel
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour


@dataclass(frozen=True, slots=True)
class Quote:
    """What a number of GPUs cost per hour by one figure, from `least` to `most` (equal where no range was published).

    `cited` says where the figure is from and of what date: no price without it.
    """

    least: UsdPerHour
    most: UsdPerHour
    billed_gpus: int
    cited: str


@dataclass(frozen=True, slots=True)
class Baseline:
    """One published figure: dollars per hour of `gpus` GPUs together, sold in multiples of `sold_in`.

    `gpu` is a model, or a family of models where the source tells no more; `dated` is a month or a day, ISO 8601.
    """

    cloud: str
    tier: str
    gpu: GpuModel
    published_as: str
    tenure: Tenure
    gpus: int
    sold_in: int
    least: UsdPerHour
    most: UsdPerHour
    dated: str
    source: str
    note: str = ""

    @property
    def name(self) -> str:
        """The cloud, with its tier where it has several."""
        return f"{self.cloud} {self.tier}" if self.tier else self.cloud

    @property
    def cited(self) -> str:
        """Source and date, as they must stand beside the price."""
        noted = f"{self.published_as}, {self.note}" if self.note else self.published_as
        return f"{self.dated}: {noted}; {self.source}"

    def quote(self, gpus: int) -> Quote:
        """Return what `gpus` GPUs cost per hour, in proportion, whole nodes where only those are sold; rounded up.

        Raises:
            ValueError: there are no GPUs to price.
        """
        if gpus < 1:
            raise ValueError(f"{gpus} GPUs have no price")
        billed = -(-gpus // self.sold_in) * self.sold_in
        share = billed / self.gpus
        return Quote(self.least.scaled(share), self.most.scaled(share), billed, self.cited)
