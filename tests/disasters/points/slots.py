"""Point 6: every slot that can run does, half an hour after weather, cooldowns, holds and patience are over."""

import math
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet

from agent.domain.record.hold import Word
from agent.domain.slot import Slot
from agent.domain.work.decision import SPARE, WAITS, Hold
from agent.domain.work.workload import Workload
from tests.disasters.clouds.cloud_draw import MARKET as CLOUDS
from tests.disasters.guards.guard_world import slot_of
from tests.disasters.guards.scripted_guard import ScriptedGuard
from tests.disasters.points import nameless
from tests.disasters.points.first_starts import FirstStarts
from tests.disasters.sight import Broken, Sight
from tests.disasters.truth import Box

PATIENCE_SECONDS = 1800.0
OF_A_PERSON = frozenset({*Word, "fleet"})
RESTS = frozenset({"slot", "workload", "moved", "cool_off", "market", "full", "started"})
"""Scopes of cooldowns that keep a slot empty."""
BY_CHOICE = frozenset({SPARE, WAITS, "wait_paused"})
"""Codes with which a strategy leaves a slot empty because that is cheaper."""


OF_NO_MOVES = frozenset({"ondemand"})
"""Strategies that wait for a silent host, whose own maintenance may begin in good weather: they move no lease."""
OF_AN_ARRAY = frozenset({"array_waits", "array_unproven"})
"""Codes with which a slot of an array waits for another one."""
BY_DISK = frozenset({"contract_end", "host_full", "ends_soon"})
"""Codes with which a slot waits for a person, because its disk may have the only copy of its work (rule 11)."""


def _works_on(box: Box) -> Slot | None:
    """Return the slot that a container of ours truly works on."""
    process = box.thing.process
    return slot_of(process.root) if isinstance(process, ScriptedGuard) else box.slot


def _has_one_pool(usable: AbstractSet[str]) -> bool:
    """Return whether one pool of clouds may be all that fits, and rest after a loss."""
    return CLOUDS in usable and "vast" not in usable


def _leaves_share(work: Workload, usable: AbstractSet[str], closed: AbstractSet[str]) -> bool:
    """Return whether slots that are spread over markets leave the share of one empty, as their numbers ask for."""
    is_rare = bool(closed & usable) or (CLOUDS in usable and len(usable) > 1)
    return len(work.places) > 1 and is_rare


class Slots:
    """Keeps the time since which nothing prevents the filling of each slot."""

    def __init__(self) -> None:
        self._free_since: dict[Slot, float] = {}
        self._calm_since = math.inf
        self._first_starts = FirstStarts()
        self.judged = 0
        """How often a slot was looked at half an hour and more after the weather had cleared."""

    def judge(
        self,
        sight: Sight,
        *,
        excuse: Callable[[Workload], str],
        closed: frozenset[str],
        tied: frozenset[Slot],
        can_run: Callable[[Workload, frozenset[str]], bool],
    ) -> Iterator[Broken]:
        """Yield the slots that should run and do not; `excuse` returns what prevents one more slot of a workload.

        `closed` are markets that closed searches for now; that counts for up to a day. `can_run` says whether one of
        the others has room for a workload; on RunPod room is not judged.
        `tied` are slots whose stopped disk may not be lost.
        """
        self._first_starts.see(sight)
        if not sight.is_calm or sight.is_shared:
            self._free_since.clear()
            return
        running = {_works_on(box) for box in sight.truth.live if box.label is not None and box.is_running}
        self._calm_since = min(self._calm_since, sight.now)
        holds = self._holds(sight)
        under_way = (box for box in sight.truth.live if self._first_starts.is_under_way(box, sight.now))
        loading = {box.slot for box in under_way if box.slot is not None}
        # What lost its label waits for a person, who alone may say whose it is.
        lost = {box.slot for box in sight.truth.live if box.slot is not None and not box.is_ours}
        lost |= {rent.slot for rent in nameless.rents(sight)}
        silent = {box.label.slot for box in sight.truth.live if box.label is not None and box.thing.is_offline}
        for work in sight.app.rules.workloads:
            for place in work.places:
                # Work with a deadline waits for cheap capacity as long as its slack lasts.
                chooses = holds.get(place) in BY_CHOICE or (work.deadline is not None and place in holds)
                chooses |= holds.get(place) in BY_DISK and place in tied
                chooses |= work.strategy in OF_NO_MOVES and place in silent
                # Another slot of the array is live, or has its own reason not to run.
                waits = [holds.get(each) in OF_AN_ARRAY for each in work.places]
                chooses |= holds.get(place) in OF_AN_ARRAY and not all(waits)
                usable = {name for name in sight.fresh if work.may_use(name)}
                chooses |= closed >= usable or _leaves_share(work, usable, closed)
                self.judged += sight.now - self._calm_since >= PATIENCE_SECONDS
                is_excused = bool(excuse(work)) or chooses or place in (lost | loading) or self._rests(sight, place)
                if is_excused or place in running:
                    self._free_since[place] = sight.now
                    continue
                since = self._free_since.setdefault(place, sight.now)
                is_late = sight.now - since > PATIENCE_SECONDS
                if (is_late or _has_one_pool(usable)) and not can_run(work, closed):
                    self._free_since[place] = since if is_late else sight.now
                elif is_late:
                    yield self._idle(sight, place, sight.now - since)

    def _rests(self, sight: Sight, place: Slot) -> bool:
        keys = {str(place), place.workload, f"slot:{place}", f"workload:{place.workload}"}
        held = {f"lease:{lease.lease_id}" for lease in sight.leases if lease.slot == place}
        held |= {lease.lease_id for lease in sight.leases if lease.slot == place}
        now = sight.at
        return any(
            not rest.is_over(now)
            and (
                (scope in OF_A_PERSON and (key in keys | held or scope == "fleet"))
                or (scope in RESTS and (key in keys | held))
            )
            for rest in sight.expiring
            for scope, key in [rest.place]
        )

    def _holds(self, sight: Sight) -> dict[Slot, str]:
        seen = sight.app.seen
        return {each.slot: each.reason.code for each in seen.plan.decisions if isinstance(each, Hold)} if seen else {}

    def _idle(self, sight: Sight, place: Slot, seconds: float) -> Broken:
        seen = sight.app.seen
        told = (
            [each.reason for each in seen.plan.decisions if isinstance(each, Hold) and each.slot == place]
            if seen
            else []
        )
        why = f"{told[0].code}: {told[0].sentence}" if told else "no reason is given"
        states = ", ".join(f"{lease.lease_id} {lease.state.value}" for lease in sight.leases if lease.slot == place)
        return Broken(
            6, sight.cycle, f"slot {place} does not run for {seconds:.0f} s of good weather; {why} [{states[:200]}]"
        )
