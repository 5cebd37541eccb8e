"""The judge: knows the truth, looks after every cycle, and remembers the state that judging the next one needs."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

from agent.app import App
from agent.config.settings import Config
from agent.decide.operators import operator_holds
from agent.domain.record.lease import LeaseState
from agent.domain.slot import Slot
from agent.domain.work.workload import Workload
from tests.disasters.guards.guard_world import GuardWorld
from tests.disasters.health.scripted_ports import ScriptedPorts
from tests.disasters.health.verdicts import Verdicts
from tests.disasters.idleness.idle_times import IdleTimes
from tests.disasters.kept_hosts.kept_leases import KeptLeases
from tests.disasters.orders import Order
from tests.disasters.points import nameless, rate_cap
from tests.disasters.points.array_rents import ArrayRents
from tests.disasters.points.faults import Faults
from tests.disasters.points.finished import Finished
from tests.disasters.points.known import Known
from tests.disasters.points.money import Money
from tests.disasters.points.only_copies import OnlyCopies
from tests.disasters.points.open_bids import OpenBids
from tests.disasters.points.prices import Prices
from tests.disasters.points.releases import Releases
from tests.disasters.points.slots import Slots
from tests.disasters.points.stopping import Stopping
from tests.disasters.points.waits import Waits
from tests.disasters.points.writes import Writes
from tests.disasters.readings import Readings
from tests.disasters.sight import Broken, Sight
from tests.disasters.story import Story, Strike
from tests.disasters.strikes import ENDLESS, NO_NUMBER
from tests.disasters.truth import Box, Truth, ours

_SLOT = "SELECT workload, slot FROM intents WHERE intent_id = ?"
FAULT_SECONDS = 3600.0
"""The patience with several leases that vanished from one listing."""
MOST_CLOSED_SECONDS = 25 * 3600.0
"""How long the word of a market on searches is kept at most."""


def is_killed(app: App) -> bool:
    """Return whether a kill of everything is in force, as the program's ledger has it."""
    return operator_holds.kill_of_everything(app.ledger.recollection().holds, app.clock.now()) is not None


CanRun = Callable[[Workload, frozenset[str]], bool]
"""Whether a market that is not closed has room for one more slot of a workload."""


class Judge:
    """Asks the six points after every cycle."""

    def __init__(
        self, story: Story, truth: Truth, guards: GuardWorld | None = None, ports: ScriptedPorts | None = None
    ) -> None:
        self._truth = truth
        self._ordered: set[str] = set()
        self._capped_at: float | None = None
        self._is_counted_capped = False
        self._closed_until: dict[str, float] = {}
        self.known = Known()
        self._readings = Readings()
        self.writes = Writes(truth, self._readings)
        self.idle_times = IdleTimes(story.works, self._readings)
        self.kept_leases = KeptLeases(guards)
        self.releases = Releases(
            truth,
            story.works,
            lambda work: work in self._ordered,
            lambda: self._is_counted_capped,
            guards,
            self.idle_times,
        )
        self.only_copies = OnlyCopies(truth, story.works, guards)
        self.verdicts = Verdicts(story.works, ports, self._readings)
        self.waits = Waits(guards)
        self.finished = Finished(truth, guards, self._readings)
        self.array_rents = ArrayRents(truth, self._readings)
        self.prices = Prices(truth)
        self.open_bids = OpenBids(truth)
        self.money = Money(truth, story.poll, self._readings)
        self.stopping = Stopping(self.known.may_look)
        self.slots = Slots()
        self.faults = Faults()
        self._vanished_at = -FAULT_SECONDS
        self._is_vanishing_unseen = False
        self._lacked: frozenset[tuple[str, str]] = frozenset()
        self._lacked_by: App | None = None
        self.killed_at: float | None = None
        self.is_lift_unsure = False
        """Whether a person was told that the end of the kill in force failed: it may be recorded all the same."""
        self.calm_since: float | None = None

    def counts(self) -> tuple[int, ...]:
        """Return how often each point was judged, 1 to 6."""
        points = (self.known, self.writes, self.releases, self.money, self.stopping, self.slots)
        return tuple(each.judged for each in points)

    def forget(self, app: App) -> None:
        """See that the process ends."""
        self.money.die(app)
        self.known.forget()
        self.close()

    def close(self) -> None:
        """Hold no file open."""
        self._readings.close()

    def leaves(self, order: Order, config: Config, *, is_second: bool) -> None:
        """See an order before the market acts on it; `config` is that of the daemon that sends it."""
        self._name(order, config.ledger)
        self.writes.leaves(order, config.ledger)
        self.prices.leaves(order, config)
        if is_second:
            self.money.hear_other(order)
            self.open_bids.hear_other()
        else:
            self.releases.leaves(order, self._decided(order, config.ledger))
            self.only_copies.leaves(order)
            self.finished.leaves(order, config, self._truth.now)
            self.array_rents.leaves(order, config)
            self.open_bids.leaves(order, must_stop=self._must_stop())
            self.money.hear_own(order, config.ledger)
        if is_second and order.kind == "release":
            # What another daemon ends has vanished from the listings of ours.
            self.hear_vanishing()
            self.faults.share(self._truth.now)

    def _name(self, order: Order, ledger: Path) -> None:
        """Note the slot of a rent whose label is too short to name it."""
        label = ours(order.label) if order.kind == "rent" else None
        if label is not None and not label.slot.workload:
            for workload, slot in self._readings.rows(ledger, _SLOT, label.intent_id):
                self._truth.hear(label.intent_id, Slot(workload, slot))

    def hear(self, now: float, strike: Strike, order: Order | None) -> None:
        """See what went wrong with the answer to an order, or with a commit."""
        self.known.hear(now, strike)
        self.releases.hear(now, strike, order)
        self.faults.hear(now, strike)
        self.money.hear(strike, order)
        if order is not None:
            self.open_bids.hear(order)

    def hear_vanishing(self) -> None:
        """See that instances vanish from a listing falsely, or by another daemon."""
        self._vanished_at, self._is_vanishing_unseen = self._truth.now, True

    def hear_rise(self, box: Box) -> None:
        """Note that a person accepts a host's higher price at the market, before the market acts on it."""
        self.money.hear_rise(box)
        self.releases.hear_rise(box)

    def look_blindly(self, cycle: int) -> Broken | None:
        """Judge what can be judged while no daemon runs."""
        return next(self.writes.judge(cycle), None)

    def look(self, sight: Sight, config: Config, ordered: set[str], can_run: CanRun) -> Broken | None:
        """Return the first point that does not hold now."""
        # An edited file gave up a lease that no workload names any more.
        self._ordered = ordered
        if self.is_lift_unsure and not is_killed(sight.app):
            self.killed_at, self.is_lift_unsure = None, False
        self._watch_cap(sight, config)
        if self._is_vanishing_unseen:
            # Patience begins with the first listing: what vanishes while nobody looks is missed later.
            self._vanished_at = sight.now
            self._is_vanishing_unseen = not all(map(sight.saw_truly, sight.fresh))
        self._watch_vanishing(sight)
        self.money.see(sight)
        self.idle_times.see(sight)
        self.only_copies.see(sight)
        self.releases.see(sight.now)
        self.releases.look(sight)
        return next(self._broken(sight, config, can_run), None)

    def last_word(self, cycle: int, ledger: Path) -> Broken | None:
        """Judge the points that are judged once, at the end."""
        return next(self.money.verify(cycle, ledger), None)

    def _broken(self, sight: Sight, config: Config, can_run: CanRun) -> Iterator[Broken]:
        return itertools.chain(
            self.writes.judge(sight.cycle),
            self.array_rents.judge(sight.cycle),
            self.kept_leases.judge(sight),
            self.open_bids.look(sight, config),
            self.known.judge(sight),
            () if sight.is_shared else self._released(sight, config.ledger),
            self.money.judge(sight, config.ledger),
            self.stopping.judge(sight, must_stop=self._must_stop()),
            self.prices.judge(sight, self.known.may_look),
            () if sight.is_shared else self._guarded(sight),
            () if sight.is_shared else self.verdicts.judge(sight, config.ledger),
            () if sight.is_shared else self.idle_times.judge(sight, config.ledger),
            self.faults.judge(sight),
            self.slots.judge(
                sight,
                excuse=lambda work: self._excuse(sight, work),
                closed=self._closed(sight),
                tied=self.only_copies.tied(),
                can_run=can_run,
            ),
        )

    def _guarded(self, sight: Sight) -> Iterator[Broken]:
        yield from self.waits.judge(sight, must_stop=self._must_stop())
        yield from self.finished.judge(sight)

    def _released(self, sight: Sight, ledger: Path) -> Iterator[Broken]:
        def reason_of(box: Box) -> str | None:
            return self._reason(ledger, box)

        yield from self.releases.judge(sight.cycle, reason_of)
        yield from self.only_copies.judge(sight.cycle, reason_of, lambda work: work in self._ordered)

    def _closed(self, sight: Sight) -> frozenset[str]:
        """Return the markets whose searches one of their answers closed."""
        for strike in sight.struck:
            if strike.place == "search" and strike.fault == "throttled":
                seconds = {ENDLESS: MOST_CLOSED_SECONDS, NO_NUMBER: 0.0}.get(strike.amount, strike.amount)
                until = sight.now + min(seconds, MOST_CLOSED_SECONDS)
                self._closed_until[strike.market] = max(until, self._closed_until.get(strike.market, 0.0))
        return frozenset(market for market, until in self._closed_until.items() if until > sight.now)

    def _must_stop(self) -> str:
        if self.killed_at is not None:
            return "a kill"
        return "a crossed cap" if self._capped_at is not None else ""

    def _excuse(self, sight: Sight, work: Workload) -> str:
        if self._must_stop() or self._is_counted_capped:
            return self._must_stop() or "a crossed cap"
        most = sight.app.rules.caps.instances
        if most is not None and sum(lease.is_open for lease in sight.leases) + len(nameless.rents(sight)) >= most:
            return "the cap on instances"
        if rate_cap.forbids(sight, self._truth, work):
            return "the cap on the rate"
        return "a market fault" if sight.now - self._vanished_at < FAULT_SECONDS else ""

    def _watch_vanishing(self, sight: Sight) -> None:
        """See whether several that are no more are missed together; a new process has forgotten that it missed them."""
        missed = (lease for lease in sight.leases if lease.is_proven and lease.state is not LeaseState.RELEASING)
        places = ((lease.market, lease.instance_id) for lease in missed if sight.saw_truly(lease.market))
        lacked = frozenset(place for place in places if place in self._truth.boxes and self._is_over(place))
        before = self._lacked if sight.app is self._lacked_by else frozenset()
        for market in {market for market, _ in lacked - before}:
            if sum(place[0] == market for place in lacked - before) > 1:
                self._vanished_at = sight.now
        self._lacked, self._lacked_by = lacked, sight.app

    def _is_over(self, place: tuple[str, str]) -> bool:
        return not self._truth.boxes[place].is_live

    def _watch_cap(self, sight: Sight, config: Config) -> None:
        """Note whether this day has crossed its cap: by its real cost, or by the ledger's count (point 4)."""
        cap = config.limits.per_day
        self._capped_at, self._is_counted_capped = None, False
        if cap is not None and cap.dollars < 100:
            is_crossed = self.money.knowable(config.ledger) > cap.dollars
            self._capped_at = sight.now if is_crossed else None
            counted = sight.app.seen is not None and sight.app.seen.plan.standing.today >= cap
            self._is_counted_capped = counted or self._capped_at is not None

    def _decided(self, order: Order, ledger: Path) -> float | None:
        """Return when the ledger recorded that the lease of a release is to be released."""
        query = "SELECT state_since FROM leases WHERE market = ? AND instance_id = ? AND state = 'releasing'"
        found = self._readings.rows(ledger, query, order.market, order.target) if order.kind == "release" else []
        return found[0][0] / 1e6 if found else None

    def _reason(self, ledger: Path, box: Box) -> str | None:
        query = "SELECT end_reason FROM leases WHERE market = ? AND instance_id = ? ORDER BY opened_at DESC"
        found = self._readings.rows(ledger, query, box.market, box.instance_id)
        return str(found[0][0]) if found else None
