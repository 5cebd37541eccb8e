"""Ends instances by their label, for a kill without a ledger: list, ask for each id, end, list again.

Invariants:
1. An instance is ended only if two answers show our fleet's label on it, the second one a look by its id (rule 18).
2. A release that fails becomes a pause, and both are tried again in the next round. Where nothing can be paused, each
   pause is a release: only that ends the cost (rule 20).
3. All is ended when every market gave two complete listings in a row without anything of ours.
4. An instance that its market calls over without a proof may still cost something. No call ends that, so nobody waits.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agent.domain import money
from agent.domain.market.instance import Instance
from agent.domain.market.label import Label
from agent.markets import labels, market_errors, port

CLEAN_LISTINGS = 2


@dataclass(frozen=True, slots=True)
class Fleet:
    """The instances of one fleet id on one market."""

    fleet_id: str
    market: str
    instances: int
    rate: money.UsdPerHour


@dataclass(slots=True)
class Round:
    """What one round saw and did: rows that still bill, by instance; markets without a listing; orders and results."""

    rows: dict[tuple[str, str], Instance] = field(default_factory=dict)
    slots: dict[tuple[str, str], str] = field(default_factory=dict)
    tried: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    trouble: dict[str, str] = field(default_factory=dict)


async def fleets(markets: Mapping[str, port.Market]) -> tuple[list[Fleet], dict[str, str]]:
    """Return the fleets whose labels the markets list, and why a market could not be listed."""
    found: list[Fleet] = []
    trouble: dict[str, str] = {}
    for name, market in markets.items():
        try:
            listed = await market.instances()
        except market_errors.MarketError as error:
            trouble[name] = str(error)
            continue
        ours = [(label.fleet_id, row) for row in listed if (label := labels.parse(row.label)) is not None]
        counts = Counter(fleet_id for fleet_id, _ in ours)
        for fleet_id, count in sorted(counts.items()):
            rate = money.total_rate(row.billing_rate for owner, row in ours if owner == fleet_id)
            found.append(Fleet(fleet_id, name, count, rate))
    return found, trouble


class EndingByLabel:
    """Ends the instances of one fleet id, round by round."""

    def __init__(self, markets: Mapping[str, port.Market], fleet_id: str, *, keep_disks: bool) -> None:
        """With `keep_disks` instances are paused where that is possible, and a disk may go on billing."""
        self._markets = markets
        self._fleet_id = fleet_id
        self._keep_disks = keep_disks
        self._clean = dict.fromkeys(markets, 0)
        self._unproven = 0

    @property
    def is_done(self) -> bool:
        """Whether no market has an instance of ours left to end."""
        return all(count >= CLEAN_LISTINGS for count in self._clean.values())

    @property
    def is_for_a_person(self) -> bool:
        """Whether two rounds in a row left only instances that their market calls over without a proof."""
        return self._unproven >= CLEAN_LISTINGS

    async def round(self) -> Round:
        """List every market once and try to end our instances there."""
        seen = Round()
        for name, market in self._markets.items():
            try:
                listed = await market.instances()
            except market_errors.MarketError as error:
                seen.trouble[name] = str(error)
                self._clean[name] = 0
                continue
            await self._end(name, market, listed, seen)
        is_all_over = bool(seen.rows) and all(row.is_called_over for row in seen.rows.values())
        self._unproven = self._unproven + 1 if is_all_over and not seen.trouble else 0
        return seen

    async def _end(self, name: str, market: port.Market, listed: Sequence[Instance], seen: Round) -> None:
        ours = [(row, label) for row in listed if (label := self._label(row)) is not None]
        left = [(row, label) for row, label in ours if row.bills_gpu or row.is_wanted_running or not self._keep_disks]
        self._clean[name] = 0 if left else self._clean[name] + 1
        for row, label in left:
            key = name, row.instance_id
            seen.rows[key], seen.slots[key] = row, _place(label)
            seen.tried[key] = await self._try(market, row)

    async def _try(self, market: port.Market, row: Instance) -> tuple[str, ...]:
        try:
            closer = await market.instance(row.instance_id)
        except market_errors.NotFound:
            return ("a look by its id: it is gone",)
        except market_errors.MarketError as error:
            return (f"not ended, as a look by its id failed: {error}",)
        if self._label(closer) is None:
            return ("not ended: a look by its id shows no label of this fleet",)
        can_pause = market.rules().can_pause
        if self._keep_disks and can_pause:
            return (await _called("pause", market.pause, row.instance_id),)
        released = await _called("release", market.release, row.instance_id)
        if closer.is_called_over and closer.message:
            return released, closer.message
        if released.endswith("confirmed") or not can_pause:
            return (released,)
        return released, await _called("pause", market.pause, row.instance_id)

    def _label(self, row: Instance) -> Label | None:
        label = labels.parse(row.label)
        return label if label is not None and label.fleet_id == self._fleet_id else None


def _place(label: Label) -> str:
    """Return the slot in words; a short label has no workload, and there is no ledger that knows it."""
    return str(label.slot) if label.slot.workload else f"slot {label.slot.index}"


async def _called(name: str, call: Callable[[str], Awaitable[None]], instance_id: str) -> str:
    try:
        await call(instance_id)
    except market_errors.MarketError as error:
        return f"{name} {error.code}: {error}"
    return f"{name} confirmed"
