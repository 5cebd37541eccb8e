"""Point 4: the ledger counts at least what was charged less a cent, and at most that and the bounds of what nobody saw.

GPUs and disks are compared. Traffic is left out: the market tells nowhere what an image fetched before an unseen end.
The bounds are those of deploy/handbook/pages/spend-bounds.md; each is reckoned here from the truth alone.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from agent.app import App
from agent.clock import BELIEVED_SECONDS
from agent.decide.accounting import meter
from agent.decide.reconcile import ownership
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from agent.ledger.tables.spend_rows import MONTH_SEED
from agent.simulator.mithril.model import Bid
from tests.disasters.clouds.ended_machines import EndedMachines
from tests.disasters.clouds.false_returns import FalseReturns
from tests.disasters.orders import Order
from tests.disasters.points import price_doubt
from tests.disasters.points.fading import Fading
from tests.disasters.points.falls import Falls
from tests.disasters.points.false_rises import FalseRises
from tests.disasters.points.false_states import FalseStates
from tests.disasters.points.given_back import GivenBack
from tests.disasters.points.loading_again import LoadingAgain
from tests.disasters.points.moved_prices import MovedPrices
from tests.disasters.points.price_doubt import Raises, agreed
from tests.disasters.points.unmetered import Unmetered
from tests.disasters.readings import Readings
from tests.disasters.sight import Broken, Sight
from tests.disasters.story import Strike
from tests.disasters.truth import Box, Truth
from tests.support import engines

CENT = 0.01
UNWRITTEN_SECONDS = 60.0
"""A release that leaves so soon after a commit failed may not be written down."""
GONE_SECONDS = 120.0
"""Between the two complete listings that must lack an instance before it is believed gone."""
FAULT_SECONDS = 3600.0
"""The patience with several that vanished from one listing: only an order counts any of it."""
SURELY = 1.05
"""Rates are rounded up to the micro-dollar, and a look has its own length."""
VERIFIED_EVERY = 40
_SPENT = f"SELECT coalesce(sum(gpu), 0) + coalesce(sum(disk), 0) FROM spend WHERE lease_id <> '{MONTH_SEED}'"  # noqa: S608

_TRAFFIC = f"SELECT coalesce(sum(traffic), 0) FROM spend WHERE lease_id <> '{MONTH_SEED}'"  # noqa: S608
_KNOWN = f"SELECT market, instance_id FROM leases WHERE end_reason <> '{ownership.NEVER_OURS}'"  # noqa: S608


class Money:
    """Keeps, for every instance, how long nobody looked while what it costs changed."""

    def __init__(self, truth: Truth, poll: float, readings: Readings) -> None:
        self._truth = truth
        self._readings = readings
        self._poll = poll
        self._looked: dict[str, float] = {}
        self._rates: dict[tuple[str, str], float] = {}
        self._gpu_rates: dict[tuple[str, str], float] = {}
        self._open: dict[tuple[str, str], float] = {}
        self._silenced: set[tuple[str, str]] = set()
        """The instances that ran when their host fell silent, until it answers again."""
        self._turned: dict[tuple[str, str], tuple[float, float]] = {}
        """When each open instance first and last turned since it was seen."""
        self._doubted = price_doubt.SECONDS + price_doubt.LISTINGS * poll
        """How long a rate is doubted."""
        self._given_back = GivenBack(truth, readings)
        self._moved_prices = MovedPrices(truth, poll)
        self._fading = Fading(poll, FAULT_SECONDS + GONE_SECONDS + 2 * poll)
        self._agreed: dict[tuple[str, str], float] = {}
        """The most that each instance was ever charged an hour."""
        self._falls = Falls(truth, poll)
        self._ended_machines = EndedMachines(truth)
        self._loading_again = LoadingAgain(truth)
        self._unmetered = Unmetered(poll)
        self._priced_falsely: dict[str, float] = {}
        self._adopted: set[str] = set()
        self._misled: set[str] = set()
        """Markets whose last listing was stale."""
        self._stale: set[tuple[str, str]] = set()
        """The instances in stale listings since the last true one of their market."""
        self._raises = Raises(truth, poll)
        self._false_rises = FalseRises(truth, poll)
        self._false_states = FalseStates(truth)
        self._false_returns = FalseReturns(truth, poll)
        self._denied: dict[str, float] = {}
        self._unwritten_at = 0.0
        self._ended_by_others: set[tuple[str, str]] = set()
        self._began = self._at = truth.now
        self._lagging: App | None = None
        self._lagging_since = 0.0
        self._above = 0.0
        self._below = 0.0
        self.judged = 0
        self.verified = 0

    def see(self, sight: Sight) -> None:
        """Take in what changed, and what the bounds grow by now that somebody has looked."""
        self._turn(self._lag(sight))
        self._see_dearer()
        for market, is_fresh in sight.fresh.items():
            if not is_fresh or not sight.saw_truly(market):
                continue
            since, listed = self._looked.get(market, self._began), sight.listed(market)
            for box in self._loading_again.lost(market, listed):
                key = (market, box.instance_id)
                self._open[key] = max(self._open.get(key, 0.0), self._truth.full_rate(box))
                self._turned.setdefault(key, (since, since))
            for key in [key for key in self._open if key[0] == market and self._turned[key][0] <= listed]:
                box = self._truth.boxes[key]
                patience = self._patience(box)
                blind = sight.now - max(since, box.thing.created)
                self._above += self._open[key] * (blind + patience) / 3600 * SURELY
                if not box.is_live and not self._is_release_known(box):
                    self._fading.begin(key, sight.now + patience, self._open[key])
                # A cycle may read for minutes after its listing: what turned since then nobody has seen yet.
                _, last = self._turned.pop(key)
                if last <= listed:
                    del self._open[key]
                else:
                    self._turned[key] = (last, last)
            self._looked[market] = listed
            self._above += self._given_back.see(market, listed, self._began) * SURELY
        self._lied(sight)
        self._adopt(sight)
        passed, self._at = sight.now - self._at, sight.now
        self._mislead(sight, passed)
        self._dark(passed)
        self._deny(sight, passed)
        over = (self._false_rises, self._fading, self._falls, self._ended_machines)
        grown = sum(each.grow(sight, passed) for each in over)
        grown += self._false_states.grow(sight) + self._false_returns.grow(sight)
        self._above += grown * SURELY
        less, more = self._moved_prices.grow(sight)
        self._above, self._below = self._above + more * SURELY, self._below + less * SURELY
        self._raises.see(sight)
        self._unmetered.see(sight)

    def die(self, app: App) -> None:
        """See what a process changed that ends before anybody looked: its clock has dated that."""
        is_believed = self._lagging is app and self._truth.now - self._lagging_since > BELIEVED_SECONDS + 2 * self._poll
        self._turn(0.0 if is_believed else max(self._truth.now - app.clock.now().timestamp(), 0.0))
        self._fading.forget()
        self._given_back.die()

    def _turn(self, lag: float) -> None:
        for box, turn in self._truth.turns():
            key = (box.market, box.instance_id)
            rate = turn.rates.gpu + turn.rates.disk
            self._agreed[key] = max(self._agreed.get(key, 0.0), rate)
            if box.label is not None:
                # What ends or stops under a clock that is behind is counted to that clock's time.
                self._below += max(self._rates.get(key, 0.0) - rate, 0.0) * lag / 3600 * SURELY
                silent = self._silent_rate(box), self._answering_rate(box, key)
                rates = (self._rates.get(key, 0.0), rate, *silent, self._start_rate(box))
                self._open[key] = max(self._open.get(key, 0.0), *rates, self._doubted_rate(box))
                self._turned[key] = (self._turned.get(key, (turn.at, 0.0))[0], turn.at)
                self._moved_prices.turn(box, turn.at, turn.rates.gpu)
            before = self._gpu_rates.get(key, 0.0)
            self._below += self._raises.fall(key, turn.at, before, turn.rates.gpu) * SURELY
            self._rates[key], self._gpu_rates[key] = rate, turn.rates.gpu

    def _see_dearer(self) -> None:
        """What rose in a stretch that nobody saw may have run all of it at the new price: both bounds hold at once."""
        for key in self._raises.raised & self._open.keys():
            box = self._truth.boxes[key]
            disk = self._truth.rate(box) - self._truth.gpu_rate(box)
            self._open[key] = max(self._open[key], agreed(box) + disk)

    def _dark(self, passed: float) -> None:
        """A pod on a silent host counts as billed: the market does not say, and this world charges nothing for it."""
        for box in self._truth.live:
            key = (box.market, box.instance_id)
            if box.market == "runpod" and box.label is not None and box.thing.is_offline:
                self._above += passed * self._agreed.get(key, 0.0) / 3600 * SURELY

    def hear(self, strike: Strike, order: Order | None) -> None:
        """See that a market said of what is there that it is not, or that the ledger took nothing."""
        self._given_back.hear(strike, order)
        if order is not None:
            self._fading.hear(order)
        if strike.market == "ledger":
            self._unwritten_at = self._truth.now
        if strike.fault == "price":
            self._raises.hear_false(strike.market)
        looked = self._looked.get(strike.market, self._began)
        self._false_rises.hear(strike, order, looked)
        self._false_states.hear(strike, order, looked)
        self._false_returns.hear(strike, order, looked)
        if strike.fault == "gone":
            rates = sum(rate for key, rate in self._rates.items() if key[0] == strike.market)
            self._denied[strike.market] = max(self._denied.get(strike.market, 0.0), rates)

    def hear_stale(self, market: str, ids: Iterable[str]) -> None:
        """See which instances a stale listing has."""
        self._stale |= {(market, each) for each in ids}

    def hear_own(self, order: Order, ledger: Path) -> None:
        """See an order of the daemon that is judged, before the market acts on it."""
        self._fading.hear(order)
        self._above += self._given_back.dollars(order, self._began, ledger) * SURELY

    def hear_other(self, order: Order) -> None:
        """See another daemon's order before the market acts on it: a bid that none of ours set is doubted (rule 21)."""
        self._given_back.hear_other()
        key = (order.market, order.target)
        if order.kind == "release":
            self._ended_by_others.add(key)
        bid = getattr(self._truth.boxes[key].thing, "bid", None) if key in self._truth.boxes else None
        if bid is not None and order.kind in {"rebid", "resume"}:
            self._raises.hear(key, bid)

    def hear_rise(self, box: Box) -> None:
        """See that a person accepts at the market what a host asks for more, before the market acts on it."""
        self._raises.hear((box.market, box.instance_id), agreed(box))

    def _deny(self, sight: Sight, passed: float) -> None:
        """What a market denied counts as gone until its next listing, which the host may not live to."""
        self._below += sum(self._denied.values()) * passed / 3600 * SURELY
        self._denied = {market: rates for market, rates in self._denied.items() if not sight.saw_truly(market)}

    def _patience(self, box: Box) -> float:
        """Return how long what is no more is counted besides, until it is believed gone."""
        if box.is_live:
            return 2 * self._poll
        return GONE_SECONDS + 2 * self._poll

    def _is_release_known(self, box: Box) -> bool:
        """Return whether the ledger has the release that ended an instance; without it, the instance is missing."""
        is_written = self._unwritten_at < (box.thing.ended or 0.0) - UNWRITTEN_SECONDS
        return is_written and self._is_ended_by_us(box)

    def _silent_rate(self, box: Box) -> float:
        """Return the rate of what ends on a silent host: it may have come back before, and counts as if so.

        A pod on it counted as billed before, and does so while it is missing.
        """
        if not box.thing.is_offline:
            return 0.0
        if box.market == "runpod":
            return self._agreed.get((box.market, box.instance_id), 0.0)
        return 0.0 if box.is_live else self._truth.full_rate(box)

    def _answering_rate(self, box: Box, key: tuple[str, str]) -> float:
        """Return the rate of what ran when its host fell silent and is stopped now that it answers again.

        It may have come back before: no record shows that its contract or the credit ended.
        """
        if box.thing.is_offline:
            if self._gpu_rates.get(key, 0.0) > 0:
                self._silenced.add(key)
            return 0.0
        was_running = key in self._silenced
        self._silenced.discard(key)
        return self._truth.full_rate(box) if was_running and box.is_live and not box.thing.holds_gpu else 0.0

    def _doubted_rate(self, box: Box) -> float:
        """Return the rate of what ended or stopped at less than agreed, while that was doubted: it counts as agreed."""
        billed = box.market == "vast" and self._gpu_rates.get((box.market, box.instance_id), 0.0) > 0
        return self._falls.counted(box) + self._truth.disk_rate(box) if billed else 0.0

    def _start_rate(self, box: Box) -> float:
        """Return the whole rate of what was lost while it loaded, or waited for an auction: it may have run."""
        if isinstance(box.thing, Bid):
            return 0.0 if box.is_live else box.thing.limit_cents / 100
        if (box.is_live and box.thing.holds_gpu) or box.thing.first_started is not None:
            return 0.0
        return self._truth.full_rate(box)

    def _lied(self, sight: Sight) -> None:
        """What a market tells falsely for a while is metered as it tells it, until it tells otherwise."""
        for market in {each.market for each in sight.struck if each.fault in {"state", "stale", "price"}}:
            less, more = zip(*(price_doubt.shares(each) for each in sight.struck if each.market == market), strict=True)
            since = self._looked.get(market, self._began)
            rates = sum(rate for key, rate in self._rates.items() if key[0] == market)
            span = (sight.now - since + self._poll) / 3600
            self._below += rates * span * max(less)
            self._above += rates * span * max(more)

    def _stopped(self, market: str) -> Iterator[Box]:
        """Yield our instances of a market that are stopped."""
        for box in self._truth.live:
            if box.market == market and box.label is not None and not box.thing.holds_gpu:
                yield box

    def _gap(self, box: Box) -> float:
        """Return by how much an instance would cost more an hour if it ran."""
        return self._truth.full_rate(box) - self._truth.rate(box)

    def _mislead(self, sight: Sight, passed: float) -> None:
        """What a stale listing shows at work, and is stopped or gone, counts so until the next true listing."""
        stale = {each.market for each in sight.struck if each.fault == "stale"}
        for market in stale | self._misled:
            rates = sum(map(self._gap, self._stopped(market)))
            shown = {key for key in self._stale if key[0] == market}
            self._above += (rates * passed / 3600 + self._fading.show(shown, sight.now)) * SURELY
        self._misled = {market for market in stale | self._misled if not sight.saw_truly(market)}
        self._stale = {key for key in self._stale if key[0] in self._misled}

    def _adopt(self, sight: Sight) -> None:
        """What no order of this ledger made is priced by the listing alone, up to the workload's price (rule 21)."""
        self._priced_falsely |= {each.market: sight.now for each in sight.struck if each.fault == "price"}
        most = {work.name: work.max_price.dollars for work in sight.app.rules.workloads}
        for lease in sight.leases:
            if lease.intent_id or lease.lease_id in self._adopted:
                continue
            self._adopted.add(lease.lease_id)
            if sight.now - self._priced_falsely.get(lease.market, -self._doubted) < self._doubted:
                self._above += most.get(lease.slot.workload, 0.0) * self._doubted / 3600 * SURELY

    def judge(self, sight: Sight, ledger: Path) -> Iterator[Broken]:
        """Yield what the ledger counts wrong, where it can know better."""
        if sight.cycle % VERIFIED_EVERY == 0:
            yield from self.verify(sight.cycle, ledger)
        yield from self._ended_machines.judge(sight)
        if not self._can_know(sight):
            return
        self.judged += 1
        self._truth.settle()
        boxes = [box for box in self._truth.boxes.values() if box.label is not None]
        charged = _charged(boxes)
        spent, behind = self._spent(sight, ledger), self._behind(sight) + self._raises.unbelieved(sight) * SURELY
        unknowable = _charged(self._unknowable(ledger))
        if spent + behind < charged - unknowable - CENT - self._below:
            yield Broken(4, sight.cycle, f"the ledger counts ${spent:.4f}, ${charged:.4f} were charged")
        if spent > charged + CENT + self._above:
            sentence = f"the ledger counts ${spent:.4f}, ${charged:.4f} were charged and ${self._above:.4f} were unseen"
            yield Broken(4, sight.cycle, sentence)

    def _behind(self, sight: Sight) -> float:
        """Return what a clock that began behind the markets' does not count of what bills now."""
        rates = sum(self._truth.rate(box) for box in self._truth.live if box.label is not None)
        return rates * self._lag(sight) / 3600 * SURELY

    def _lag(self, sight: Sight) -> float:
        """Return by how many seconds the clock of a new process is behind the markets', while it is believed (rule 14).

        It takes listings to find that out: time before the first does not count.
        """
        lag = sight.now - sight.at.timestamp()
        if lag <= 1:
            return 0.0
        if self._lagging is not sight.app:
            if not all(map(sight.saw_truly, sight.fresh)):
                return lag
            self._lagging, self._lagging_since = sight.app, sight.now
        return lag if sight.now - self._lagging_since <= BELIEVED_SECONDS + 2 * self._poll else 0.0

    def verify(self, cycle: int, ledger: Path) -> Iterator[Broken]:
        """Yield what `gpubid ledger verify` finds."""
        self.verified += 1
        found = engines.place(ledger).verify()
        if not found.is_sound:
            yield Broken(4, cycle, f"ledger verify: {(*found.findings, *found.inconsistencies)[0]}")

    def _can_know(self, sight: Sight) -> bool:
        if sight.is_shared or any(each.kind is not IntentKind.RELEASE for each in sight.intents):
            return False
        if not all(sight.saw_truly(market) for market in sight.fresh) or self._open:
            return False
        unsure = {LeaseState.MISSING, LeaseState.RELEASING}
        leases = {(lease.market, lease.instance_id) for lease in sight.leases}
        known = all((box.market, box.instance_id) in leases for box in self._truth.live if box.label is not None)
        is_unmetered = self._unmetered.excuses(sight)
        return known and not is_unmetered and not any(lease.state in unsure for lease in sight.leases)

    def knowable(self, ledger: Path) -> float:
        """Return what our instances were charged as far as anybody could see it, with the traffic that was seen."""
        self._truth.settle()
        boxes = [box for box in self._truth.boxes.values() if box.label is not None]
        traffic = sum(box.thing.charged.get("bandwidth", 0.0) for box in boxes)
        ((micros,),) = self._readings.rows(ledger, _TRAFFIC)
        return _charged(boxes) - _charged(self._unknowable(ledger)) + min(traffic, micros / 1e6)

    def _unknowable(self, ledger: Path) -> list[Box]:
        """Return the instances that no ledger could know.

        A person took the label of some before it had proven them ours (rule 18). Their hosts, or another daemon, ended
        others before the ledger had a lease of them; point 1 judges that it has one after three complete listings.
        """
        ours = (box for box in self._truth.boxes.values() if box.label is not None)
        unproven = [box for box in ours if not box.is_ours or not (box.is_live or self._is_ended_by_us(box))]
        known = set(map(tuple, self._readings.rows(ledger, _KNOWN))) if unproven else ()
        return [box for box in unproven if (box.market, box.instance_id) not in known]

    def _is_ended_by_us(self, box: Box) -> bool:
        return box.was_destroyed and (box.market, box.instance_id) not in self._ended_by_others

    def _spent(self, sight: Sight, ledger: Path) -> float:
        ((micros,),) = self._readings.rows(ledger, _SPENT)
        return micros / 1e6 + meter.outstanding(sight.leases, sight.at).dollars


def _charged(boxes: Iterable[Box]) -> float:
    return sum(box.thing.charged["gpu"] + box.thing.charged["disk"] for box in boxes)
