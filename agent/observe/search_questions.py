"""The questions of one search: what a workload asks a market for."""

from agent.domain.market.gpu import GpuModel
from agent.domain.money import UsdPerHour
from agent.domain.work.workload import Workload
from agent.markets import port

LEAST_ROWS = 2
"""Rows of one question at least, where a workload has many prices and asks one for each."""


def of(work: Workload, hosts: tuple[str, ...], rows: int) -> list[port.OfferQuery]:
    """Return one question for each price: models with equal prices share one, and all share the rows."""
    asked: dict[UsdPerHour, list[GpuModel]] = {}
    accepted = work.requirements.gpu_models
    for model in accepted or (model for model, _ in work.max_price_by_gpu):
        asked.setdefault(work.price_of(model), []).append(model)
    groups = [(most, tuple(models)) for most, models in asked.items()]
    groups += [] if accepted else [(work.max_price, ())]
    return [
        port.OfferQuery(
            requirements=work.requirements,
            disk_gb=work.disk_gb,
            gpu_models=models,
            host_ids=hosts,
            max_price=most,
            max_rows=max(rows // len(groups), LEAST_ROWS),
        )
        for most, models in groups
    ]
