"""Room on Vast for one more slot of a workload: free hosts of its models that its strategy truly pays for."""

import statistics
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from agent.decide.pricing.worth import work_value
from agent.domain.market import gpu
from agent.domain.market.gpu import GpuModel
from agent.domain.record.host_check import HostCheck
from agent.domain.work.guard_terms import Accept
from agent.domain.work.workload import Workload
from agent.simulator.vast.model import Slice
from agent.simulator.vast.world import World
from strategies.hedged_rules.params import HedgedParams
from strategies.patient import PatientParams
from tests.disasters import stage
from tests.disasters.guards.host_lies import OTHER_CARD

ROOM = 1.3
"""A price so far below the paid one has room for disk, loading and a bid's headroom."""
OWNERS_TO_SPREAD_OVER = 6
"""So many owners ask less than the workload's price."""
OWNERS_PAID = 2
"""This many slots are filled by the strategy: the host of one may be in cooldown."""


def rejected(lying: Iterable[tuple[str, GpuModel]], checks: Iterable[HostCheck]) -> frozenset[tuple[str, GpuModel]]:
    """Return those hosts of Vast whose guards lie about them whose last recorded check has the lie."""
    by_age = sorted((check for check in checks if check.market == "vast"), key=lambda check: check.checked_at)
    last = {(check.host_id, check.gpu): check for check in by_age}
    return frozenset(host for host in lying if host in last and _is_false(last[host]))


def _is_false(check: HostCheck) -> bool:
    return check.seen_gpu == OTHER_CARD or (check.seen_gpus is not None and check.seen_gpus < check.gpus)


@dataclass(frozen=True, slots=True)
class Room:
    """The world, and a workload that wants one more slot in it."""

    world: World
    work: Workload
    rejected: Collection[tuple[str, GpuModel]] = ()
    """Hosts, each with its model, that a workload which rejects for a check does not rent."""

    elsewhere: float = 0.0
    """The DLPerf of the fastest model that another market sells to the workload."""

    @property
    def is_enough(self) -> bool:
        """Whether a slot that can run must run, also for a strategy that spreads owners."""
        asked = {row.host.owner_id for row in self._free() if self._is_within(self.world.ask(row))}
        if len(asked) < OWNERS_TO_SPREAD_OVER:
            return False
        fastest = self._fastest()
        return len({row.host.owner_id for row in self._free() if self._is_paid(row, fastest)}) >= OWNERS_PAID

    def _free(self) -> Iterator[Slice]:
        """Yield the slices of hosts and owners that hold nothing of the account."""
        live = self.world.live_contracts()
        held = {contract.slice.machine_id for contract in live}
        owners = {contract.host.owner_id for contract in live}
        rejected = self.rejected if self.work.guard is not None and self.work.guard.accept is Accept.REJECT else ()
        for row in self.world.listed():
            model = gpu.model(row.host.gpu.name)
            is_free = row.machine_id not in held and row.host.owner_id not in owners
            is_free &= (str(row.machine_id), model) not in rejected
            is_wanted = row.num_gpus == 1 and model in self.work.requirements.gpu_models
            if is_free and is_wanted and self.world.true_floor(row) is not None:
                yield row

    def _is_within(self, price: float, share: float = 1.0) -> bool:
        return price * ROOM < self.work.max_price.dollars * share

    def _is_paid(self, row: Slice, fastest: float) -> bool:
        """Return whether the strategy pays for a slice. To some, an hour counts by speed as a share of `fastest`."""
        params = stage.strategies()[self.work.strategy].params
        ask, floor = self.world.ask(row), self.world.true_floor(row)
        if not isinstance(params, HedgedParams | PatientParams):
            return self._is_within(ask)
        share = work_value.share(params.on_demand_share, self.work, params.unvalued["on_demand_share"])
        speed = min(row.host.dlperf_per_gpu / fastest, 1.0)
        is_bid = floor is not None and floor <= params.ceiling * ask and self._is_within(floor, speed)
        return is_bid or self._is_within(ask, speed * share)

    def _fastest(self) -> float:
        """Return the usual DLPerf of the fastest model that the workload names, wherever the world has it."""
        speeds: dict[GpuModel, list[float]] = {}
        for host in self.world.hosts.values():
            speeds.setdefault(gpu.model(host.gpu.name), []).append(host.dlperf_per_gpu)
        known = [statistics.median(speeds[model]) for model in self.work.requirements.gpu_models if model in speeds]
        return max([self.elsewhere, *known])
