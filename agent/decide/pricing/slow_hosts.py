"""Hosts that a workload's `accept_floor` would reject again, found before a rent by their kept checks."""

import statistics
from collections.abc import Iterable, Mapping

from agent.decide.pricing import measured_speed
from agent.domain.fleet import Fleet
from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HostKey
from agent.domain.market.offer import Offer
from agent.domain.work.guard_terms import Accept
from agent.domain.work.workload import Workload

SlowHosts = Mapping[tuple[HostKey, GpuModel], str]
"""How slow each host with a model was, as a sentence."""


def of(fleet: Fleet, work: Workload, offers: Iterable[Offer]) -> SlowHosts:
    """Return the hosts among the offers that are below a workload's `accept_floor`, if the workload rejects for it."""
    terms = work.guard
    if terms is None or terms.accept is not Accept.REJECT or terms.accept_floor is None or not fleet.host_checks:
        return {}
    # Each rent from a pool is on another host.
    owners = {(offer.host, offer.gpu): offer.owner_id for offer in offers if not offer.host.is_pool}
    found: dict[tuple[HostKey, GpuModel], str] = {}
    for (host, model), measured in measured_speed.by_host(fleet.host_checks.values()).items():
        owner_id = owners.get((host, model))
        if owner_id is None:
            continue
        usual = measured_speed.typical(fleet.host_checks.values(), model, host, owner_id)
        share = statistics.median(measured) / usual.figure if usual is not None and usual.is_known else 1.0
        if share < terms.accept_floor:
            found[host, model] = (
                f"measured at {share:.0%} of the median {model}; accept_floor is {terms.accept_floor:g}"
            )
    return found
