"""Hosts that a workload's guard would only reject again, by their kept checks."""

from collections.abc import Mapping

from agent.decide.pricing import failed_checks, offer_refusal, slow_hosts
from agent.domain.fleet import Fleet
from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HostKey
from agent.domain.work.workload import Workload

RefusedHosts = Mapping[tuple[HostKey, GpuModel], offer_refusal.Refusal]
"""Why each host with a model is not rented."""


def of(fleet: Fleet, work: Workload, book: offer_refusal.OrderedOffers) -> RefusedHosts:
    """Return those hosts among the offers of a workload's book."""
    slow = slow_hosts.of(fleet, work, book.offers)
    lacking = failed_checks.of(fleet, work, book.offers)
    refused = {key: offer_refusal.Refusal("accept_floor", why) for key, why in slow.items()}
    return refused | {key: offer_refusal.Refusal("not_as_rented", why) for key, why in lacking.items()}
