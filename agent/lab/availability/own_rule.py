"""Our own rule on a span: the choice of decide/service/capacity_choice.py, carried out as the daemon does.

It sees the same as the published rules: its requests and their results.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from agent.decide.pricing import host_record, loss_rate
from agent.decide.service import capacity_choice
from agent.domain.market import host
from agent.domain.market.host import HostKey, HostRecord, OwnerKey
from agent.lab.availability.availability_ticks import Choice, Seen
from agent.lab.availability.live_dial import LiveDial
from agent.lab.availability.span import Setting, Span, region

AGAIN_HOURS = 1.0
"""A pool that refused a start is not tried for this time. Then it counts as never tried."""
ANEW_HOURS = 0.1
"""The time between two choices if nothing changes, because hazards fall slowly."""
_HOUR = timedelta(hours=1)
_BEGIN = datetime(2000, 1, 1, tzinfo=UTC)
"""The instant at which a span begins, because records fade by the clock."""


class Hedged:
    """Remembers for each pool the record that the ledger keeps of a host, and its last refusal of a start.

    `worth` is the cost of an hour with too few warm slots, in hours of all slots on demand; a live dial finds it by
    itself. `spare_slots` is the most slots above the number. A place that is not held yet counts as dearer by the share
    `least_gain`, as in the daemon.
    """

    def __init__(
        self, span: Span, setting: Setting, worth: float | LiveDial, spare_slots: int = 1, least_gain: float = 0.0
    ) -> None:
        self._span = span
        self._dearer = 1.0 + least_gain
        self._kin = [region(pool) for pool in span.pools]
        self._records: dict[HostKey, HostRecord] = {}
        self._recorded = 0.0
        self._lost = [0.0] * len(span.pools)
        self._refused = [-AGAIN_HOURS] * len(span.pools)
        self._starts: list[list[int]] = [[] for _ in span.pools]
        self._on_demand: list[int] = []
        self._terms = capacity_choice.Terms(
            slots=setting.slots,
            on_demand_price=span.on_demand_price,
            short_worth=0.0,
            # A loss is seen at the next look, and a start is warm `cold_steps` later.
            gap_hours=(span.cold_steps + 1) * span.step_hours,
            most_extra=spare_slots,
        )
        self._worth = worth
        self._all_on_demand = setting.slots * span.on_demand_price
        self._last: tuple[Seen, Choice] | None = None

    def choose(self, seen: Seen) -> Choice:
        """Return the wanted instances of this step."""
        now = seen.step * self._span.step_hours
        if isinstance(self._worth, LiveDial):
            self._worth.look(seen)
        if tuple(seen.wanted) != tuple(map(len, self._starts)) or tuple(seen.held) != tuple(seen.wanted):
            self._learn(seen, now)
        if self._last is not None and self._is_settled(*self._last, seen):
            return self._last[1]
        choice = self._anew(seen, now)
        self._last = seen, choice
        return choice

    def _is_settled(self, before: Seen, choice: Choice, seen: Seen) -> bool:
        """Return whether all wanted instances exist, nothing has changed, and the choice is recent."""
        is_granted = tuple(seen.held) == choice.spots and seen.on_demand == choice.on_demand
        looked = (seen.step - before.step) * self._span.step_hours
        return is_granted and looked < ANEW_HOURS and replace(before, step=seen.step, wanted=seen.wanted) == seen

    def _learn(self, seen: Seen, now: float) -> None:
        # A lost instance was lost within the step that ended.
        self._record(now - self._span.step_hours)
        for place, (wanted, held, starts) in enumerate(zip(seen.wanted, seen.held, self._starts, strict=True)):
            had = len(starts)
            del starts[held:]
            starts.extend([seen.step - 1] * (held - had))
            if held < wanted:
                self._refused[place] = now
            if held < min(wanted, had):
                self._expose(place, now, HostRecord("", "", market_losses=1.0))
                self._lost[place] = now

    def _record(self, now: float) -> None:
        """Add the time up to now to the records. A place counts once, at any number of slots."""
        for place, starts in enumerate(self._starts):
            begin, end = self._age(place, max(self._recorded, 0.0)), self._age(place, now)
            if starts and end > begin:
                weighed = loss_rate.weighed(begin, end)
                self._expose(place, now, HostRecord("", "", bid_seconds=(end - begin) * 3600, weighed_hours=weighed))
        self._recorded = max(self._recorded, now)

    def _expose(self, place: int, now: float, more: HostRecord) -> None:
        pool = self._pool(place)
        known = self._records.get(pool) or HostRecord(*pool)
        self._records[pool] = host.exposed(known, more, _BEGIN + now * _HOUR)

    def _pool(self, place: int) -> HostKey:
        return HostKey(self._kin[place], self._span.pools[place])

    def _age(self, place: int, now: float) -> float:
        """Return the hours for which a place has had its instances."""
        starts = self._starts[place]
        return max(now - starts[0] * self._span.step_hours, 0.0) if starts else 0.0

    def _anew(self, seen: Seen, now: float) -> Choice:
        self._record(now)
        worth = self._worth.worth if isinstance(self._worth, LiveDial) else self._worth
        self._terms = replace(self._terms, short_worth=worth * self._all_on_demand)
        at = _BEGIN + now * _HOUR
        judged, mean = (
            host_record.pooled(self._records, at),
            loss_rate.ordinary(host_record.total(self._records.values(), at)),
        )
        hazards = [
            loss_rate.expected(
                host_record.of_host(judged, self._pool(index), OwnerKey(self._kin[index], "")),
                mean,
                min(self._age(index, now), now - self._lost[index]),
            )
            for index in range(len(self._span.pools))
        ]
        which = self._worth_a_try(seen, now)
        places = [
            capacity_choice.Place(
                seen.prices[index] * (1.0 if seen.held[index] else self._dearer),
                *hazards[index],
                seen.held[index],
                self._room(seen, index, now),
                self._kin[index],
            )
            for index in which
        ]
        chosen = capacity_choice.choose(places, replace(self._terms, on_demand_held=seen.on_demand))
        target = [0] * len(seen.held)
        for index, count in zip(which, chosen.spots, strict=True):
            target[index] = count
        return self._carried_out(seen, target, chosen.on_demand)

    def _worth_a_try(self, seen: Seen, now: float) -> list[int]:
        """Return the pools with instances and those without a recent refusal, or else the one refused longest ago."""
        others = [index for index, count in enumerate(seen.held) if not count]
        fresh = [index for index in others if self._refused[index] <= now - AGAIN_HOURS]
        tried = fresh or sorted(others, key=lambda index: (self._refused[index], index))[:1]
        return sorted([*(index for index, count in enumerate(seen.held) if count), *tried])

    def _room(self, seen: Seen, index: int, now: float) -> int:
        # A pool that has some and just refused more has no more.
        has_refused = self._refused[index] == now and seen.held[index] > 0
        return seen.held[index] if has_refused else self._terms.slots + self._terms.most_extra

    def _carried_out(self, seen: Seen, target: list[int], on_demand: int) -> Choice:
        """Return the target, warm instances until their replacements are warm, and on-demand for possible refusals."""
        slots, wanted = self._terms.slots, list(target)
        lacking = slots - sum(map(min, seen.warm, target)) - min(seen.on_demand_warm, on_demand)
        for index in sorted(range(len(wanted)), key=seen.prices.__getitem__):
            kept = min(max(lacking, 0), max(seen.held[index] - wanted[index], 0))
            wanted[index] += kept
            lacking -= kept
        # On-demand starts beside the wanted instances. It is released at the next look if those were granted.
        missing = max(slots - sum(map(min, seen.held, wanted)), 0)
        on_demand = max(on_demand, capacity_choice.cover(missing, self._terms), self._bridge(seen, wanted))
        on_demand = min(on_demand, slots)
        del self._on_demand[on_demand:]
        self._on_demand.extend([seen.step] * (on_demand - len(self._on_demand)))
        return Choice(tuple(wanted), on_demand)

    def _bridge(self, seen: Seen, wanted: list[int]) -> int:
        """Return how many on-demand instances are warm before the interruptible ones that replace them."""
        cold = self._span.cold_steps
        spots = [
            seen.step - start for starts, want in zip(self._starts, wanted, strict=True) for start in starts[:want]
        ]
        running = [seen.step - start for start in self._on_demand]
        most = 0
        for ahead in range(cold):
            ready = sum(age >= cold - ahead for age in spots)
            coming = sum(age >= cold - ahead for age in running)
            most = max(most, min(coming, self._terms.slots - ready))
        return most
