"""Our bids and their machines: what a start, a notice, an end, a pause and a new price do to them, and what they cost.

An instance bills from its allocation on, at the price of its pool. A boot disk that is kept costs nothing, as the
documents say of a pause; volumes bill from their making to their end. Whether the five minutes of notice are billed is
not documented; the climate says it.
"""

import random

from agent.simulator.climate import Climate
from agent.simulator.event_queue import Timeline
from agent.simulator.instances.billing import Rates, Till
from agent.simulator.instances.containers import Containers
from agent.simulator.mithril import assumed_figures, identifiers
from agent.simulator.mithril.climate_table import Mithril
from agent.simulator.mithril.model import Bid, Event, Happening, Status
from agent.simulator.mithril.vms import BOOTING, PricePeriod, Vm, VmStatus


class Fleet:
    """Keeps the machines of one account's bids."""

    def __init__(self, timeline: Timeline, climate: Climate, rng: random.Random, seed: str) -> None:
        """Start without bids. `rng` draws the ids."""
        self._timeline = timeline
        self._climate = climate
        self._ids = rng
        self.till = Till(0.0)
        self.vms: dict[str, tuple[Bid, Vm]] = {}
        self.containers: Containers[Bid] = Containers(
            timeline,
            climate,
            f"{seed}/mithril",
            on_turn=self._reckon,
            on_first_run=lambda _: None,
            on_failure=lambda _: None,
        )

    # --- what the auction does ------------------------------------------------------------------------------------
    def start(self, bid: Bid, cents: int) -> None:
        """Give a bid its machines: paused ones start again, others are new, on the same boot disk."""
        bid.status, bid.notice_at, bid.holds_gpu = Status.ALLOCATED, None, True
        self.note(bid, Happening.ALLOCATED)
        vms = bid.live_vms or [self._new_vm(bid) for _ in range(bid.quantity)]
        self._price(bid, cents)
        self._boot(bid, vms, BOOTING[0] if vms[0].status is VmStatus.NEW else VmStatus.STARTING)

    def warn(self, bid: Bid) -> None:
        """Give a bid five minutes' notice."""
        bid.status, bid.notice_at = Status.PREEMPTING, self._timeline.now
        bid.turn += 1
        self._turn(bid, VmStatus.PREEMPTING)
        if not self._climate.table(Mithril).bills_notice:
            self._price(bid, None)

    def shut_down(self, bid: Bid) -> None:
        """Take the machines of a bid whose notice is over; it is open again."""
        self.note(bid, Happening.PREEMPTED)
        self._let_go(bid, Status.OPEN)
        self._turn(bid, VmStatus.PREEMPTED)

    def fail(self, bid: Bid) -> None:
        """Let its machines break for good; it is open again."""
        self._let_go(bid, Status.OPEN)
        self._turn(bid, VmStatus.ERROR)

    def reprice(self, bid: Bid, cents: int) -> None:
        """Let a running bid pay another price from now on."""
        self._price(bid, cents)

    # --- what the renter does -------------------------------------------------------------------------------------
    def open(self, bid: Bid) -> None:
        """Add a new bid, which has no machines yet."""
        self.note(bid, Happening.PLACED)
        self._reckon(bid)

    def pause(self, bid: Bid) -> None:
        """Stop its machines; the boot disk stays."""
        self.note(bid, Happening.PAUSED)
        self._let_go(bid, Status.PAUSED)
        self._stop(bid, VmStatus.PAUSED)

    def resume(self, bid: Bid) -> None:
        """Let it bid again."""
        self.note(bid, Happening.RESUMED)
        bid.status = Status.OPEN

    def end(self, bid: Bid) -> None:
        """End it for good."""
        self.note(bid, Happening.TERMINATED)
        self._let_go(bid, Status.TERMINATED)
        self._stop(bid, VmStatus.TERMINATED)
        self.containers.forget(bid)
        bid.ended, bid.end_cause = self._timeline.now, "destroyed"
        self.till.close(bid, self._timeline.now)

    def note(self, bid: Bid, kind: Happening, volume: str | None = None) -> None:
        """Write a line into its history."""
        bid.history.append(Event(self._timeline.now, kind, bid.limit_cents, volume))

    # --- inside -----------------------------------------------------------------------------------------------------
    def _new_vm(self, bid: Bid) -> Vm:
        now, number = self._timeline.now, len(self.vms) + 1
        name = bid.terms.name if bid.quantity == 1 else f"{bid.terms.name}-{len(bid.vms) % bid.quantity}"
        vm = Vm(identifiers.fid(self._ids, "inst"), number, name, now, identifiers.address(), [(now, VmStatus.NEW)])
        bid.vms.append(vm)
        self.vms[vm.fid] = bid, vm
        return vm

    def _let_go(self, bid: Bid, status: Status) -> None:
        bid.turn += 1
        bid.status, bid.notice_at, bid.holds_gpu = status, None, False
        bid.is_offline, bid.host.offline_until = False, None
        self.containers.halt(bid)
        self._price(bid, None)

    def _price(self, bid: Bid, cents: int | None) -> None:
        """Let every machine of a bid pay a price from now on; None ends it."""
        now = self._timeline.now
        for vm in bid.live_vms:
            if vm.prices and vm.prices[-1].end is None:
                vm.prices[-1].end = now
            if cents is not None:
                vm.prices.append(PricePeriod(cents, now))
        self._reckon(bid)

    def _reckon(self, bid: Bid) -> None:
        self.till.rate(bid, Rates(gpu=bid.rate), self._timeline.now)

    def _turn(self, bid: Bid, status: VmStatus) -> None:
        for vm in bid.live_vms:
            vm.statuses.append((self._timeline.now, status))

    def _boot(self, bid: Bid, vms: list[Vm], first: VmStatus) -> None:
        """Plan the states of machines from `first` until they run."""
        bid.turn += 1
        rng, at = self.containers.rng(bid), self._timeline.now
        for status, seconds in zip(BOOTING, assumed_figures.BOOT_SECONDS, strict=True):
            if BOOTING.index(status) >= BOOTING.index(first):
                self._plan(bid, at, vms, status)
                at += rng.uniform(*seconds)
        self._plan(bid, at, vms, VmStatus.RUNNING)

    def _stop(self, bid: Bid, last: VmStatus) -> None:
        """Let its machines stop, and then be in their last state."""
        vms = bid.live_vms
        self._plan(bid, self._timeline.now, vms, VmStatus.STOPPING)
        seconds = self.containers.rng(bid).uniform(*assumed_figures.STOP_SECONDS)
        self._plan(bid, self._timeline.now + seconds, vms, last)

    def _plan(self, bid: Bid, at: float, vms: list[Vm], status: VmStatus) -> None:
        turn = bid.turn

        def due() -> None:
            if bid.turn != turn:
                return
            for vm in vms:
                if vm.status is not status and not vm.is_ended:
                    vm.statuses.append((self._timeline.now, status))
            if status is VmStatus.RUNNING and bid.image:
                self.containers.begin(bid)

        if at <= self._timeline.now:
            due()
        else:
            self._timeline.put(at, due)
