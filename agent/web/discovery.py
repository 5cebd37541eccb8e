"""Prometheus HTTP service discovery of the workloads' ports on useful leases, so that moved services stay reachable.

The answer is a list of {"targets": ["1.2.3.4:41234"], "labels": {...}}, with one entry for each port. A lease that is
not ready yet is not in it, because its service is still loading. Labels begin with `__meta_gpubid_`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from aiohttp import web

from agent.domain.record.lease import Lease
from agent.domain.work import usefulness
from agent.domain.work.workload import Workload
from agent.web.daemon_port import Orders
from agent.web.reading import lease_address
from agent.web.request_checks import middlewares

PATH = "/services"


def services(leases: Iterable[Lease], workloads: Sequence[Workload], name: str | None = None) -> list[dict[str, Any]]:
    """Return the addresses of useful leases, or those of one workload."""
    known = {work.name: work for work in workloads}
    return [
        {
            "targets": [place],
            "labels": {
                "__meta_gpubid_workload": lease.slot.workload,
                "__meta_gpubid_slot": str(lease.slot.index),
                "__meta_gpubid_port": port.partition("/")[0],
                "__meta_gpubid_protocol": port.partition("/")[2] or "tcp",
                "__meta_gpubid_market": lease.market,
                "__meta_gpubid_host": lease.host_id,
                "__meta_gpubid_lease": lease.lease_id,
            },
        }
        for lease in leases
        if name in {None, lease.slot.workload}
        and not lease.is_held
        and usefulness.is_useful(lease, known.get(lease.slot.workload))
        for port, place in sorted(lease_address.ports(lease).items())
        if lease.slot.workload in known and port.partition("/")[0] in map(str, known[lease.slot.workload].ports)
    ]


def route(app: Orders) -> web.RouteDef:
    """Return the route. `?workload=NAME` selects one workload."""

    async def answered(request: web.Request) -> web.Response:
        leases = app.ledger.recollection(app.clock.now()).leases
        return web.json_response(services(leases, app.rules.workloads, request.query.get("workload")))

    return web.get(PATH, middlewares.Turn().taken(answered))
