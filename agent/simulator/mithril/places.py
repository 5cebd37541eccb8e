"""The pools of this market: a type of instance in a region, with its capacity and its prices when the market begins.

Three pools begin with exactly the figures recorded for them. The capacity of the others is assumed, and their reserved
price is that of the recorded pool of the same GPU.
"""

import dataclasses

from agent.simulator.mithril import assumed_figures, models
from agent.simulator.mithril.models import InstanceType


@dataclasses.dataclass(frozen=True, slots=True)
class Pool:
    """One pool as it is sold. Prices are cents per instance and hour.

    `free` and `first_spot_cents` are those of a recorded beginning, else None.
    """

    fid: str
    kind: InstanceType
    region: str
    total: int
    reserved_cents: int
    minimum_cents: int = assumed_figures.MINIMUM_CENTS
    free: int | None = None
    first_spot_cents: int | None = None


def _recorded(fid: str, kind: InstanceType, region: str, name: str) -> Pool:
    figures = assumed_figures.PRICES[name]
    return Pool(
        fid,
        kind,
        region,
        total=figures["total"],
        reserved_cents=figures["reserved"],
        minimum_cents=figures["minimum"],
        free=figures["free"],
        first_spot_cents=figures["spot"],
    )


def _assumed(fid: str, kind: InstanceType, region: str, total: int) -> Pool:
    return Pool(fid, kind, region, total, assumed_figures.RESERVED_CENTS[kind.gpu_type] * kind.gpu_count)


POOLS: tuple[Pool, ...] = (
    _recorded("auc_simulated00001", models.A100_1X, "us-central3-a", "A100 1x"),
    _recorded("auc_simulated00002", models.H100_8X, "us-central2-a", "H100 8x"),
    _recorded("auc_simulated00003", models.B200_1X, "us-central5-a", "B200 1x"),
    _assumed("auc_simulated00004", models.A100_1X, "us-central1-b", 24),
    _assumed("auc_simulated00005", models.A100_2X, "us-central3-a", 12),
    _assumed("auc_simulated00006", models.A100_4X, "us-central3-a", 6),
    _assumed("auc_simulated00007", models.A100_8X, "us-central3-a", 8),
    _assumed("auc_simulated00008", models.A100_8X, "eu-central1-a", 6),
    _assumed("auc_simulated00009", models.H100_8X_OLDER, "us-central1-a", 16),
    _assumed("auc_simulated00010", models.H100_8X_OLDER, "eu-central1-b", 10),
    _assumed("auc_simulated00011", models.H200_8X, "me-central1-a", 8),
    _assumed("auc_simulated00012", models.B200_8X, "us-central5-a", 4),
)
