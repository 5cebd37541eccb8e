"""Every type of machine that the clouds behind the server rent out, with its price."""

import dataclasses
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from agent.simulator.dstack import assumed_figures
from agent.simulator.dstack.model import Kind, Machine


def kinds() -> Iterator[Kind]:
    """Yield every type of machine of every cloud."""
    for (backend, gpu), cents in {**assumed_figures.CENTS, **assumed_figures.ASSUMED_CENTS}.items():
        for region in assumed_figures.REGIONS[backend]:
            for count in assumed_figures.COUNTS:
                name = f"{gpu.lower()}-{count}x"
                kind = Kind(backend, region, name, gpu, assumed_figures.MEMORY_GB[gpu], count, cents * count)
                yield kind
                if backend in assumed_figures.SPOT_CLOUDS:
                    each = assumed_figures.SPOT_CENTS.get((backend, gpu), round(cents * assumed_figures.SPOT_SHARE))
                    yield dataclasses.replace(kind, cents=each * count, is_spot=True)


def fitting(
    known: Iterable[Kind], order: Mapping[str, Any], backends: Collection[str], fleet: Mapping[str, Any] | None
) -> list[Kind]:
    """Return the types that fit an order in a fleet, the cheapest first; those of an order without fleets, in any."""
    gpu = (order.get("resources") or {}).get("gpu") or {}
    count, memory = gpu.get("count") or {}, gpu.get("memory") or {}
    most = order.get("max_price") or math.inf
    found = [
        kind
        for kind in known
        if kind.backend in backends
        and kind.backend in (order.get("backends") or backends)
        and kind.region in (order.get("regions") or [kind.region])
        and kind.name in (order.get("instance_types") or [kind.name])
        and (count.get("min") or 0) <= kind.count <= (count.get("max") or kind.count)
        and kind.memory_gb >= (memory.get("min") or 0)
        and kind.gpu.lower() in [str(name).lower() for name in gpu.get("name") or [kind.gpu]]
        and kind.cents / 100 <= most
        and order.get("spot_policy", "on-demand") in ("auto", "spot" if kind.is_spot else "on-demand")
    ]
    # A fleet has only machines on demand unless its file says otherwise. An order cannot change that.
    policy = fleet["configuration"].get("spot_policy") or "on-demand" if fleet is not None else ""
    policy = policy if order.get("fleets") else "auto"
    of_fleet = [kind for kind in found if policy in {"auto", "spot" if kind.is_spot else "on-demand"}]
    return sorted(of_fleet, key=lambda kind: (kind.cents, kind.backend, kind.region, kind.name))


def fleet_of(order: Mapping[str, Any]) -> str:
    """Return the name of the first fleet of an order; empty without fleets."""
    first = (order.get("fleets") or [""])[0]
    return str(first.get("name") if isinstance(first, dict) else first)


def is_full(fleet: Mapping[str, Any] | None, machines: Iterable[Machine]) -> bool:
    """Return whether a fleet has as many machines as its file allows, so that nothing is offered in it."""
    nodes = fleet["configuration"].get("nodes") if fleet is not None else None
    most = nodes.get("max") if isinstance(nodes, Mapping) else None
    if fleet is None or not isinstance(most, int):
        return False
    name = str(fleet["configuration"].get("name"))
    return sum(one.fleet == name and one.status not in {"terminating", "terminated"} for one in machines) >= most
