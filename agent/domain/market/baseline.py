"""A baseline: a price of another cloud, with date and source. It is only compared with, never rented."""

from dataclasses import dataclass

from agent.domain.market.gpu import GpuModel
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour


@dataclass(frozen=True, slots=True)
class Quote:
    """The hourly price of a number of GPUs, from `least` to `most` (equal if no range was published).

    `cited` is the source and date of the figure; every price has one.
    """

    least: UsdPerHour
    most: UsdPerHour
    billed_gpus: int
    cited: str


@dataclass(frozen=True, slots=True)
class Baseline:
    """One published figure: dollars per hour of `gpus` GPUs together, sold in multiples of `sold_in`.

    `gpu` is a model, or a family of models if the source is not more precise. `dated` is a year, a month or
    a day, ISO 8601. `term_days` are what a reservation is paid for at least, None if its source did not say.
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
    term_days: int | None = None

    @property
    def name(self) -> str:
        """The cloud, with its tier if it has several."""
        return f"{self.cloud} {self.tier}" if self.tier else self.cloud

    @property
    def cited(self) -> str:
        """Source and date, for display beside the price."""
        noted = f"{self.published_as}, {self.note}" if self.note else self.published_as
        return f"{self.dated}: {noted}; {self.source}"

    def quote(self, gpus: int) -> Quote:
        """Return the hourly price of `gpus` GPUs in proportion, rounded up to the sold multiples.

        Raises:
            ValueError: there are no GPUs to price.
        """
        if gpus < 1:
            raise ValueError(f"{gpus} GPUs have no price")
        billed = -(-gpus // self.sold_in) * self.sold_in
        share = billed / self.gpus
        return Quote(self.least.scaled(share), self.most.scaled(share), billed, self.cited)
