"""What a workload's GPUs cost on clouds: what the last offers of a server ask, else dated published figures."""

import functools
from collections.abc import Container, Iterable, Iterator
from typing import Any

from agent.baselines import baseline_loading
from agent.baselines.catalogue import Catalogue
from agent.decide.pricing import offer_refusal
from agent.domain.fleet import Fleet
from agent.domain.market import host
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.work.workload import Workload

MOST = 3
"""The most prices to show of one tenure."""
_NOTHING_TAKEN = offer_refusal.Unavailable()


@functools.cache
def shipped() -> Catalogue:
    """Return the published figures that come with the program."""
    return baseline_loading.load()


def of(fleet: Fleet, work: Workload, published: Catalogue) -> list[dict[str, Any]]:
    """Return the lowest price of each of the cheapest clouds, on demand first, in dollars per hour of all its GPUs.

    The prices are those of a server's offers that meet every requirement but the price, or of its last sample. Without
    any they are the published ones of the GPU models that the workload names, but for markets that we ask.
    """
    servers = [name for name, view in fleet.markets.items() if view.rules.is_listed]
    offered = list(_cheapest(_offered(fleet, work, servers)))
    return offered or list(_cheapest(_published(work, published, fleet.markets)))


def _offered(fleet: Fleet, work: Workload, servers: Iterable[str]) -> Iterator[dict[str, Any]]:
    views = [fleet.markets[name] for name in servers if work.may_use(name)]
    for row in (row for view in views for row in view.offers or view.sample):
        if offer_refusal.refusal(row, work, fleet.now, _NOTHING_TAKEN) is None:
            yield from _tenures(row, work)


def _tenures(row: Offer, work: Workload) -> Iterator[dict[str, Any]]:
    for tenure, rate in ((Tenure.ON_DEMAND, row.ask), (Tenure.INTERRUPTIBLE, row.floor)):
        if rate is not None and not row.is_price_unknown:
            yield {
                "cloud": host.first_part(row.host_id),
                "gpu": row.gpu,
                "gpus": row.gpus,
                "tenure": tenure.value,
                "dollars_per_hour": (rate + row.disk_rate(work.disk_gb)).dollars,
                "market": row.market,
                "seen_at": row.seen_at.isoformat(),
                "dated": None,
                "source": None,
            }


def _published(work: Workload, published: Catalogue, asked: Container[str]) -> Iterator[dict[str, Any]]:
    for figure in (each for model in work.requirements.gpu_models for each in published.find(model)):
        if figure.cloud in asked:
            continue
        quote = figure.quote(work.requirements.gpus)
        yield {
            "cloud": figure.name,
            "gpu": figure.published_as,
            "gpus": quote.billed_gpus,
            "tenure": figure.tenure.value,
            "dollars_per_hour": quote.least.dollars,
            "market": None,
            "seen_at": None,
            "dated": figure.dated,
            "source": figure.source,
        }


def _cheapest(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the lowest price of each of the cheapest clouds. A reserved price is paid for a term, so it is left out."""
    ordered = sorted(rows, key=lambda row: row["dollars_per_hour"])
    for tenure in (Tenure.ON_DEMAND, Tenure.INTERRUPTIBLE):
        clouds: dict[str, dict[str, Any]] = {}
        for row in ordered:
            if row["tenure"] == tenure.value:
                clouds.setdefault(row["cloud"], row)
        yield from list(clouds.values())[:MOST]
