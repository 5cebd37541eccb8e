"""Point 4: what a cloud took back counts until that is proven, and no longer (spend-bounds.md).

The end of a machine is proven by two looks in a row, if the end was watched; else by a person's word. Until then it
counts at its listed price.
"""

import dataclasses
from collections.abc import Iterator

from agent.app import App
from agent.domain.record.lease import Bills
from agent.simulator.dstack.model import FINISHED, Run
from tests.disasters.clouds.cloud_draw import MARKET
from tests.disasters.sight import Broken, Sight
from tests.disasters.truth import Box, Truth, run_price

LONGEST_GAP_SECONDS = 120.0
LATEST_SECONDS = 720.0
"""Ends that take longer are proven by nobody's look."""
WHOLE_AGAIN_SECONDS = 900.0
"""After a false state the program must see a machine whole for so long before it believes a sign of its end."""
PROVING_LISTINGS = 4
"""True listings after which a watched end must be proven: two that say so, one to delete it, and one that begins it."""


@dataclasses.dataclass(slots=True)
class _Watch:
    """The end of one machine as the judge saw it."""

    app: App
    began: float
    looked: float
    is_amiss: bool = False
    listings: frozenset[float] = frozenset()
    """The times of the true listings since it was over."""


class EndedMachines:
    """Watches the ends of machines beside the program."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self._watched: dict[str, _Watch] = {}
        self._whole: dict[str, float] = {}
        """When a true listing last showed each machine whole to the program that runs now."""
        self._told_falsely = -WHOLE_AGAIN_SECONDS
        """When a listing last had a false state."""
        self._app: App | None = None
        self._silent: frozenset[str] = frozenset()
        """The clouds that did not answer the server at the last look."""

    def grow(self, sight: Sight, passed: float) -> float:
        """Return the dollars that count after a cloud took a machine back."""
        return sum(run_price(run) for _, run in self._kept(sight) if run.ended is not None) * passed / 3600

    def judge(self, sight: Sight) -> Iterator[Broken]:
        """Yield the machines whose end was watched with nothing amiss, and which count on."""
        kept = dict(self._kept(sight))
        if self._app is not sight.app:
            self._app, self._whole = sight.app, {}
        self._watched = {name: watch for name, watch in self._watched.items() if name in kept}
        # A struck plan of a cloud proves no client of it, and without one the program believes no end.
        is_true = sight.saw_truly(MARKET) and not any(each.market in {"ledger", MARKET} for each in sight.struck)
        if any((each.market, each.place, each.fault) == (MARKET, "machines", "state") for each in sight.struck):
            self._told_falsely = sight.now
        is_doubted = sight.now - self._told_falsely < WHOLE_AGAIN_SECONDS + LONGEST_GAP_SECONDS
        counted = {lease.instance_id for lease in sight.leases if lease.bills is Bills.GPU_AND_DISK}
        for name, run in kept.items():
            if run.reason is None:
                self._whole[name] = sight.now if is_true and not is_doubted and not self._is_lost(run) else 0.0
                continue
            watch = self._watched.setdefault(name, _Watch(sight.app, sight.now, self._whole.get(name, 0.0)))
            watch.is_amiss |= not is_true or sight.is_shared or watch.app is not sight.app or self._is_lost(run)
            watch.is_amiss |= sight.now - watch.looked > LONGEST_GAP_SECONDS
            watch.looked = sight.now
            is_late = run.machine is None or (run.machine.finished or 0.0) - watch.began > LATEST_SECONDS
            if self._is_over(run):
                watch.listings |= {round(sight.listed(MARKET))}
            if name in counted and len(watch.listings) > PROVING_LISTINGS and not watch.is_amiss and not is_late:
                yield Broken(4, sight.cycle, f"dstack {name} is gone, its end was watched, and the ledger counts on")
        self._silent = self._truth.clouds.clients.unavailable if self._truth.clouds is not None else frozenset()

    def _is_lost(self, run: Run) -> bool:
        """Return whether the project does not have the cloud of a run's machine, or perhaps no client of it."""
        world = self._truth.clouds
        if world is None or run.machine is None:
            return False
        cloud = run.machine.kind.backend
        return cloud not in world.backends or cloud in world.clients.unavailable or cloud in self._silent

    def _is_over(self, run: Run) -> bool:
        is_back = run.machine is not None and run.machine.ended is not None and run.machine.status == "terminated"
        return is_back and run.status in FINISHED

    def _kept(self, sight: Sight) -> Iterator[tuple[str, Run]]:
        """Yield the runs of ours that the ledger has open leases of."""
        for lease in sight.leases:
            box: Box | None = self._truth.boxes.get((lease.market, lease.instance_id))
            if box is not None and isinstance(box.thing, Run):
                yield lease.instance_id, box.thing
