"""The questions of one search: what a workload asks a market for."""

from collections.abc import Sequence

from agent.domain.market.gpu import GpuModel
from agent.domain.money import UsdPerHour
from agent.domain.work.workload import Workload
from agent.markets import port

LEAST_ROWS = 2
"""Rows of one question at least, where a workload has many prices and asks one for each."""
MOST_QUESTIONS = 3
"""Questions of one search at most: with the one for held hosts they fit into a minute of the slowest market."""

_Group = tuple[UsdPerHour, tuple[GpuModel, ...]]
"""A price and the models that may cost as much; no models: all of them."""


def of(work: Workload, hosts: tuple[str, ...], rows: int) -> list[port.OfferQuery]:
    """Return one question for each price, at most `MOST_QUESTIONS`: all share the rows.

    Beyond that neighbouring prices are asked for together at the higher one. Named hosts have few offers, so one
    question for all prices suffices.
    """
    groups = _joined(_by_price(work), 1 if hosts else MOST_QUESTIONS)
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


def _by_price(work: Workload) -> list[_Group]:
    """Return the prices and their models, the highest first, and last the price of every other model."""
    asked: dict[UsdPerHour, list[GpuModel]] = {}
    accepted = work.requirements.gpu_models
    for model in accepted or (model for model, _ in work.max_price_by_gpu):
        asked.setdefault(work.price_of(model), []).append(model)
    groups = [(most, tuple(asked[most])) for most in sorted(asked, reverse=True)]
    return groups + ([] if accepted else [(work.max_price, ())])


def _joined(groups: Sequence[_Group], most: int) -> Sequence[_Group]:
    """Return at most so many groups; a question without models already has all of them."""
    if len(groups) <= most:
        return groups
    size = -(-len(groups) // most)
    parts = [groups[at : at + size] for at in range(0, len(groups), size)]
    return [(max(price for price, _ in part), _all_models(part)) for part in parts]


def _all_models(groups: Sequence[_Group]) -> tuple[GpuModel, ...]:
    return () if any(not models for _, models in groups) else tuple(model for _, models in groups for model in models)
