"""Point 3: a healthy lease is released for a recorded reason that is true in the world."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator

from agent.decide.reconcile import readback
from agent.domain.record.lease import LeaseState
from agent.simulator.mithril.model import Bid
from agent.simulator.mithril.vms import VmStatus
from tests.disasters.exchange import UNHEARD
from tests.disasters.guards.guard_world import GuardWorld
from tests.disasters.idleness.idle_times import IdleTimes
from tests.disasters.orders import Order
from tests.disasters.points.checks import Checks
from tests.disasters.points.ends import Ends
from tests.disasters.sight import LISTED, Broken, Sight
from tests.disasters.story import Strike, Work
from tests.disasters.strikes import DEATH
from tests.disasters.truth import Box, Truth

LATELY_SECONDS = 3600.0
LAST_SECONDS = 660.0
"""A lease may be released this long before its host leaves the market: ten minutes, and the time of a cycle."""
SEEN_SECONDS = 120.0
"""Between two looks of the judge at the truth, at most, while the weather is bad."""
LIES_TO_BELIEVE = 2
"""This many equal answers are believed: nobody could detect a lie that the market repeats so often."""
CALLED_SECONDS = 900.0
"""So long ago two false answers may have been: the product waits ten minutes at most for more of the end of a batch."""
OF_THE_STOPPED = frozenset({"host_full", "contract_end", "start_overdue"})
"""Codes of releases of instances that do not run; `start_overdue` is for one that never ran."""
OF_THE_LOST = frozenset({"move_lost", "not_needed"})
"""Codes of releases of leases that were lost, which the market may give back before the release is carried out."""
LISTINGS = 2
"""So many true listings in a row that showed it running are known to the program."""
IMAGE_SECONDS = 290.0
"""How long an image of these stories loads at 200 Mb/s."""
TERMS = frozenset({"host", "price", "limit"})
"""Lies about the fields by which a rent is read back."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pending:
    """A release of an instance that truly runs."""

    box: Box
    runs_elsewhere: bool
    was_seen: bool
    """Whether a listing has shown it running."""
    is_again: bool
    """Whether an earlier one was sent."""
    was_decided: bool
    """Whether the ledger had it before the instance began to run."""
    was_last: bool
    """Whether the ledger had it while the end of its host was near."""
    was_listed: bool
    """Whether the last two true listings showed it running as it runs now, no lie came since, and it was to be kept."""
    decided: float
    """When the ledger had the release, or when it was sent."""
    is_back: bool
    """Whether the program surely knew that it ran again when the release was sent: nothing hid it for an hour."""
    was_replaced: bool
    """Whether another instance of its slot ran when the release of this stopped one was decided."""


def _may_run(box: Box, now: float) -> bool:
    """Return whether its machine has run for as long as an image loads: nothing there shows a container."""
    thing = box.thing
    last = thing.vms[-1].statuses[-1] if isinstance(thing, Bid) and thing.vms else (now, None)
    return box.is_live and last[1] is VmStatus.RUNNING and now - last[0] >= IMAGE_SECONDS


class Releases:
    """Checks every release of an instance that truly runs.

    `ordered` says whether a person asked for an end of a workload.
    """

    def __init__(
        self,
        truth: Truth,
        works: Iterable[Work],
        ordered: Callable[[str], bool],
        is_capped: Callable[[], bool],
        guards: GuardWorld | None = None,
        idle_times: IdleTimes | None = None,
    ) -> None:
        self._truth = truth
        self._idle_times = idle_times
        self._ends = Ends(truth, works, guards)
        self._checks = Checks(guards)
        self._ordered = ordered
        self._is_capped = is_capped
        self._pending: list[Pending] = []
        self._begun: set[tuple[str, str]] = set()
        """The instances for which a release was sent, until the ledger shows that it goes on without one."""
        self._ran: dict[tuple[str, str], float] = {}
        self._lies: list[tuple[float, str]] = []
        self._false_states: list[tuple[float, str, str]] = []
        """The false words of state: when, on which market, and whether in a listing or in a look by id."""
        self._near_ends: dict[tuple[str, str], tuple[float, float]] = {}
        """Since when, and until when, the end of an instance's host was near; a host may put it off again."""
        self._unwritten_at = -LATELY_SECONDS
        self._struck_at = -LATELY_SECONDS
        """When something last went wrong that is not the death of a process."""
        self._shown: set[tuple[str, str]] = set()
        """The instances that a whole cycle listed truly and whose terms it recorded."""
        self._dearer: set[tuple[str, str]] = set()
        self._listed: dict[str, list[float]] = {}
        """The times of each market's last true listings, since the last lie of it."""
        self._leaving: set[tuple[str, str]] = set()
        """Whose release was decided in an earlier cycle."""
        self._now = 0.0
        self.judged = 0

    def leaves(self, order: Order, decided: float | None) -> None:
        """Note the release of a healthy instance of ours, and whether its slot runs elsewhere at this instant.

        `decided` is when the ledger recorded its first release, if it did.
        """
        key = (order.market, order.target)
        box = self._truth.boxes.get(key)
        if order.kind != "release" or box is None or box.label is None:
            return
        is_again = key in self._begun
        self._begun.add(key)
        if not box.is_running:
            return
        others = [each for each in self._truth.boxes.values() if each is not box and each.slot == box.slot]
        self._ends.see_one(box, box.slot or box.label.slot)
        runs_elsewhere = any(each.is_running or self._ran_lately(each) or _may_run(each, self._now) for each in others)
        seen, listed = key in self._ran, self._was_listed(box) and key not in self._leaving
        began = box.thing.running_since
        was_decided = decided is not None and began is not None and decided < began
        since, until = self._near_ends.get(key, (math.inf, -math.inf))
        was_last = decided is not None and since <= decided <= until + SEEN_SECONDS
        known = {"was_seen": seen, "is_again": is_again, "was_decided": was_decided, "was_listed": listed}
        known["was_last"] = was_last
        is_calm = self._truth.now - self._struck_at > LATELY_SECONDS
        known["is_back"] = is_calm and began is not None and self._truth.now - began > SEEN_SECONDS
        at = self._truth.now if decided is None else decided
        ran = (self._ran.get((each.market, each.instance_id), -math.inf) for each in others)
        was_replaced = was_decided and max(ran, default=-math.inf) >= at - SEEN_SECONDS
        self._pending.append(Pending(box, runs_elsewhere, **known, decided=at, was_replaced=was_replaced))

    def _is_last(self, box: Box) -> bool:
        end: float = getattr(box.thing, "end_time", math.inf)
        return end - self._now < LAST_SECONDS

    def _was_listed(self, box: Box) -> bool:
        times, since = self._listed.get(box.market, []), box.thing.running_since
        return len(times) == LISTINGS and since is not None and since <= times[0]

    def _ran_lately(self, box: Box) -> bool:
        return self._now - self._ran.get((box.market, box.instance_id), -LATELY_SECONDS) < LATELY_SECONDS

    def hear(self, now: float, strike: Strike, order: Order | None) -> None:
        """Take in a fault of an order or of its answer."""
        if order is not None and order.kind == "release" and strike.fault in UNHEARD:
            self._begun.add((order.market, order.target))
        if strike.fault not in DEATH:
            self._struck_at = now
        if strike.place in LISTED:
            self._listed.pop(strike.market, None)
        if strike.fault in TERMS:
            self._lies.append((now, strike.market))
        if strike.fault == "state":
            self._false_states.append((now, strike.market, strike.place))
        if strike.market == "ledger":
            self._unwritten_at = now
            self._listed.clear()

    def hear_rise(self, box: Box) -> None:
        """Note that a person accepts a higher price of an instance that was not read back yet (rule 16)."""
        key = (box.market, box.instance_id)
        if self._unwritten_at >= box.thing.created and key not in self._shown:
            self._dearer.add(key)

    def look(self, sight: Sight) -> None:
        """Take in whose terms a cycle has read back and written down: one that no fault of the ledger has struck."""
        self._checks.see(sight)
        if sight.is_shared or any(strike.market == "ledger" for strike in sight.struck):
            self._listed.clear()
            return
        for market in filter(sight.saw_truly, sight.fresh):
            times = self._listed.setdefault(market, [])
            self._listed[market] = [*times, min(sight.began, sight.listed(market))][-LISTINGS:]
        places = {(lease.market, lease.instance_id): lease.state for lease in sight.leases}
        self._leaving = {place for place, state in places.items() if state is LeaseState.RELEASING}
        # An ending that the ledger does not have is decided anew.
        self._begun -= places.keys() - self._leaving
        for lease in sight.leases:
            key = (lease.market, lease.instance_id)
            box = self._truth.boxes.get(key)
            is_healthy = box is not None and box.is_live and box.thing.holds_gpu and not box.thing.is_offline
            if is_healthy and lease.is_proven and sight.saw_truly(lease.market):
                self._shown.add(key)

    def see(self, now: float) -> None:
        """Remember the running instances: a decided release stays, whatever becomes of the other lease."""
        self._now = now
        self._ends.see()
        self._ran |= {(box.market, box.instance_id): now for box in self._truth.live if box.is_running}
        for box in filter(self._is_last, self._truth.live):
            since, _ = self._near_ends.get((box.market, box.instance_id), (now, now))
            self._near_ends[box.market, box.instance_id] = (since, now)

    def judge(self, cycle: int, reason_of: Callable[[Box], str | None]) -> Iterator[Broken]:
        """Yield every such release whose recorded reason is none or untrue."""
        pending, self._pending = self._pending, []
        for each in pending:
            self.judged += 1
            why = self._untrue(each, reason_of(each.box))
            if why:
                yield Broken(3, cycle, f"{each.box.market} {each.box.instance_id} was released while it ran: {why}")

    def _untrue(self, pending: Pending, code: str | None) -> str:
        box, runs_elsewhere = pending.box, pending.runs_elsewhere
        is_ordered = bool(box.label and self._is_ordered(box.market, box.label.slot.workload))
        if code is None:
            return "the ledger has no lease of it"
        if not code:
            # A lease that a person ended, or that nobody uses, ends although that could not be recorded (rule 13).
            # No listing has shown an overdue start running that begins to run between the last one and its release.
            is_done = box.slot is not None and self._ends.is_done(box.slot)
            is_idle = self._idle_times is not None and self._idle_times.may_release(box, pending.decided)
            is_unused = runs_elsewhere or not pending.was_seen or is_done or is_idle
            is_unwritten = is_unused and self._now - self._unwritten_at < LATELY_SECONDS
            return "" if is_ordered or is_unwritten else "no reason is recorded"
        if code.startswith("mismatch"):
            lies = sum(market == box.market and at >= box.thing.created for at, market in self._lies)
            # It costs more indeed, and a ledger that took nothing does not know that it was rented at less.
            is_dearer = code.startswith("mismatch: it costs") and (box.market, box.instance_id) in self._dearer
            # What a refused bid left behind is stopped. It starts once its bid is enough, while its release is refused.
            is_leftover = code == readback.REFUSED_AND_DONE and pending.was_decided
            is_true = is_dearer or is_leftover or lies >= LIES_TO_BELIEVE
            return "" if is_true else f"recorded is {code!r}, and it is what was rented"
        if code in {"moved", "not_needed", "move_lost", "old_is_back", "spare_not_worth"} and not runs_elsewhere:
            # Where a cap forbids two at once, what its host ends within minutes makes room for the next.
            is_last = code == "moved" and (self._is_last(box) or pending.was_last)
            # A person's order carries out an ending that was decided before the instance ran and could not be done
            # (rule 18).
            is_true = is_last or code == "spare_not_worth" or (is_ordered and pending.is_again)
            # A release of a stopped lease is sent until it is done, unless the program knows that the lease came back
            # before any order left.
            is_true |= code in OF_THE_LOST and pending.was_decided and (pending.is_again or not pending.is_back)
            is_true |= code == "moved" and pending.was_replaced
            return "" if is_true else f"recorded is {code!r}, and its slot runs nowhere else"
        if code in OF_THE_STOPPED and pending.was_listed and not pending.is_again:
            return f"recorded is {code!r}, and true listings showed it running"
        if code in {"over_budget", "over_rate"} and not self._is_capped():
            return f"recorded is {code!r}, and no cap is near"
        if code == "idle" and not pending.was_decided and self._idle_times is not None:
            why = self._idle_times.untrue(box, pending.decided)
            return f"recorded is {code!r}, and {why}" if why else ""
        return "" if is_ordered else self._checks.untrue(box, code) or self._unordered(box, code)

    def _is_ordered(self, market: str, workload: str) -> bool:
        """Return whether a person asked for an end of a workload, or of what runs of it in a market."""
        return self._ordered(workload) or self._ordered(f"{market}/{workload}")

    def _unordered(self, box: Box, code: str) -> str:
        """Return why a reason is untrue where no person asked for an end of the workload."""
        if code in {"ordered", "killed", "released_before"}:
            return f"recorded is {code!r}, and nobody ordered it"
        is_done = box.slot is not None and self._ends.is_done(box.slot)
        if code == "done" and not is_done and not self._is_called_ended(box):
            return "recorded is 'done', and nobody said so, nor has its work ended"
        return ""

    def _is_called_ended(self, box: Box) -> bool:
        """Return whether both a listing and a look by id have lately shown false states, as nobody could detect."""
        since = max(self._now - CALLED_SECONDS, box.thing.created)
        places = {place for at, market, place in self._false_states if market == box.market and at >= since}
        return places >= {"listing", "look"}
