"""The figures of a version of the ledger at an instant: money, slots, bids and events, in whole micro-dollars.

This is a second reading of the ledger, and shares with the feed only the ledger's own shapes, the committed spend (rule
12) and the phases of paid time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import floor

from agent.config.settings import Config
from agent.decide.accounting import phases
from agent.decide.limits import committed_spend
from agent.domain.market.tenure import Tenure
from agent.domain.money import MICROS, Usd, UsdPerHour
from agent.domain.record.account import HOUR
from agent.domain.record.budget import EVERYTHING, Window
from agent.domain.record.event import Event
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.record.shadow_account import Counted
from agent.domain.slot import Slot
from tests.cockpit.ledger_versions import Version


@dataclass(frozen=True, slots=True)
class Row:
    """A slot as the ledger has it: its leases, the lead lease, and that one's floor and ask.

    `trails` are the bid, floor and ask of each lease with a known price, without what only the lease itself knows.
    """

    slot: str
    is_configured: bool
    leases: Sequence[Lease]
    lead: Lease | None
    micros_per_hour: int
    floor: int | None
    ask: int | None
    useful_share: float | None
    trails: Sequence[tuple[int | None, int | None, int | None]]

    @property
    def bid(self) -> int | None:
        """The bid for the GPUs; None on demand or without a lease."""
        is_bid = self.lead is not None and self.lead.tenure is Tenure.INTERRUPTIBLE
        return self.lead.gpu_rate.micros if self.lead and is_bid else None

    @property
    def state(self) -> str:
        """The state of the leading lease, or empty."""
        return self.lead.state.value if self.lead else "empty"


@dataclass(frozen=True, slots=True)
class Work:
    """One workload's money: now, today, and for its useful time of today."""

    micros_per_hour: int
    today: int
    metered: int
    useful: int

    @property
    def hours(self) -> float:
        """Useful hours of today, up to the last metering."""
        return round(self.useful / HOUR, 4)

    @property
    def dollars_per_hour(self) -> float | None:
        """Dollars for each useful hour."""
        return round(self.metered / MICROS / (self.useful / HOUR), 6) if self.useful else None


@dataclass(frozen=True, slots=True)
class Expected:
    """Everything that a cockpit may show of one version at one instant; money in micro-dollars."""

    at: datetime
    today: int
    month: int
    micros_per_hour: int
    committed: Mapping[Window, int]
    caps: Mapping[Window, int | None]
    runway_hours: float | None
    runway_ends: str
    credit: Mapping[str, int | None]
    credit_sentences: Mapping[str, str]
    works: Mapping[str, Work]
    rows: Sequence[Row]
    events: Sequence[Event]
    in_doubt: int

    @property
    def running(self) -> int:
        """How many configured slots run."""
        return sum(row.is_configured and row.state == LeaseState.RUNNING.value for row in self.rows)

    @property
    def wanted(self) -> int:
        """How many slots are configured."""
        return sum(row.is_configured for row in self.rows)


def expected(version: Version, at: datetime, config: Config) -> Expected:
    """Return the figures of the ledger at an instant at which that version was current."""
    known = version.memory.recollection(at)
    rate = sum(_rate(lease) for lease in known.leases)
    owed = sum(_owed(lease, at) for lease in known.leases)
    standing = committed_spend.committed(known.leases, known.intents, known.total, known.spend_of, at)
    hard = config.limits.hard(EVERYTHING)
    amounts = {window: hard.amount(window) for window in (Window.DAY, Window.MONTH)}
    caps = {window: None if amount is None else amount.micros for window, amount in amounts.items()}
    caps[Window.HOUR] = None if hard.per_hour is None else hard.per_hour.micros
    credit = {name: None if kept.amount is None else kept.amount.micros for name, kept in known.credits.items()}
    committed = {
        Window.HOUR: standing.rate.micros,
        Window.DAY: standing.today.micros,
        Window.MONTH: standing.month.micros,
    }
    hours, ends = _runway(committed, caps, credit, known.leases, at)
    return Expected(
        at=at,
        today=known.total.today.micros + owed,
        month=known.total.month.micros + owed,
        micros_per_hour=rate,
        committed=committed,
        caps=caps,
        runway_hours=hours,
        runway_ends=ends,
        credit=credit,
        credit_sentences={name: _credit_sentence(name, amount, known.leases) for name, amount in credit.items()},
        works=_works(version, known.leases, at),
        rows=_rows(version, known.leases, config, at),
        events=version.events,
        in_doubt=len(known.intents),
    )


def _rate(lease: Lease) -> int:
    gpu = lease.gpu_rate.micros if lease.bills is Bills.GPU_AND_DISK else 0
    return 0 if lease.bills is Bills.NOTHING else gpu + lease.disk_rate.micros


def _owed(lease: Lease, at: datetime) -> int:
    """Return the cost of a lease since its last metering, rounded half up."""
    seconds = max((at - lease.accrued_until).total_seconds(), 0.0)
    return floor(_rate(lease) * seconds / 3600 + 0.5)


def _runway(
    committed: Mapping[Window, int],
    caps: Mapping[Window, int | None],
    credit: Mapping[str, int | None],
    leases: Sequence[Lease],
    at: datetime,
) -> tuple[float | None, str]:
    rate, ends = sum(_rate(lease) for lease in leases), list[tuple[float, str]]()
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    first = (midnight.replace(day=1) + timedelta(days=32)).replace(day=1)
    for window, end in ((Window.DAY, midnight + timedelta(days=1)), (Window.MONTH, first)):
        cap = caps[window]
        if cap is not None and rate:
            hours = max(cap - committed[window], 0) / rate
            ends += (
                [(hours, f"the cap {window.value.replace('_', ' ')}")]
                if hours <= (end - at).total_seconds() / 3600
                else []
            )
    for market, amount in credit.items():
        there = sum(_rate(lease) for lease in leases if lease.market == market)
        if amount is not None and there:
            ends.append((max(amount, 0) / there, f"the credit of {market}"))
    return min(ends, default=(None, ""))


def _credit_sentence(market: str, amount: int | None, leases: Sequence[Lease]) -> str:
    """Return how long the credit of a market lasts, in the words of the feed."""
    rate = sum(_rate(lease) for lease in leases if lease.market == market)
    if amount is None:
        return f"the credit of {market} is unknown"
    if not rate:
        return f"credit of {market} is {Usd(amount)}, and nothing bills there now"
    lasts = _lasting(int(max(amount, 0) / rate * 60))
    return f"credit of {market}, {Usd(amount)}, lasts {lasts} at the present rate of {UsdPerHour(rate)}"


def _lasting(minutes: int) -> str:
    """Return so many minutes in their two largest units."""
    days, hours = divmod(minutes // 60, 24)
    if days:
        return f"{days} day{'s' * (days > 1)}" + (f" {hours} h" if hours else "")
    if hours:
        return f"{hours} h" + (f" {minutes % 60} min" if minutes % 60 else "")
    return f"{minutes} min"


def _works(version: Version, leases: Sequence[Lease], at: datetime) -> dict[str, Work]:
    metered = version.sums[at.date()]
    names = {*metered, *(lease.slot.workload for lease in leases)}
    found = {}
    for name in names:
        mine, counted = [lease for lease in leases if lease.slot.workload == name], metered.get(name, Counted())
        owed = sum(_owed(lease, at) for lease in mine)
        spent = counted.spent.micros
        found[name] = Work(sum(_rate(lease) for lease in mine), spent + owed, spent, counted.useful)
    return found


def _rows(version: Version, leases: Sequence[Lease], config: Config, at: datetime) -> list[Row]:
    """Return the configured slots in their order, then each lease that fills none."""
    places = [place for work in config.workloads for place in work.places]
    filled = {place: [lease for lease in leases if lease.slot == place and not lease.is_held] for place in places}
    loose = [lease for lease in leases if lease.is_held or lease.slot not in filled]
    rows = [_row(place, mine, version, config, at) for place, mine in filled.items()]
    return rows + [_row(lease.slot, [lease], version, None, at) for lease in loose]


def _row(place: Slot, mine: Sequence[Lease], version: Version, config: Config | None, at: datetime) -> Row:
    running = [lease for lease in mine if lease.state is LeaseState.RUNNING]
    staying = [lease for lease in mine if lease.state is not LeaseState.RELEASING]
    lead = (running or staying or mine)[-1] if mine else None
    seen, ask_ = _sampled(lead, version) if lead is not None else (None, None)
    kept, ask = (lead.host_floor, lead.ask) if lead is not None else (None, None)
    return Row(
        slot=str(place),
        is_configured=config is not None,
        leases=mine,
        lead=lead,
        micros_per_hour=sum(_rate(lease) for lease in mine),
        floor=kept.micros if seen is None and kept else seen,
        ask=ask.micros if ask_ is None and ask else ask_,
        useful_share=_useful_share(mine, version, config, at) if config is not None else None,
        trails=[trail for lease in mine if any(trail := _trail(lease, version))],
    )


def _trail(lease: Lease, version: Version) -> tuple[int | None, int | None, int | None]:
    """Return bid, floor and ask of a lease; an on-demand one has no bid."""
    bid = lease.gpu_rate.micros if lease.tenure is Tenure.INTERRUPTIBLE else None
    return bid, *_sampled(lease, version)


def _sampled(lease: Lease, version: Version) -> tuple[int | None, int | None]:
    """Return floor and ask of the last samples of the lease's part of its host."""
    mine = [
        each
        for each in sorted(version.prices, key=lambda sample: sample.at)
        if (each.market, each.host_id, each.gpus) == (lease.market, lease.host_id, lease.gpus)
    ]
    floors = [each.floor.micros for each in mine if each.floor is not None]
    asks = [each.ask.micros for each in mine if each.ask is not None]
    return floors[-1] if floors else None, asks[-1] if asks else None


def shares(version: Version, config: Config, at: datetime) -> dict[str, float | None]:
    """Return the useful share of each configured slot, and None for each lease that fills none."""
    leases = version.memory.recollection(at).leases
    places = [place for work in config.workloads for place in work.places]
    filled = {place: [lease for lease in leases if lease.slot == place and not lease.is_held] for place in places}
    loose = {f"{lease.slot}?": None for lease in leases if lease.is_held or lease.slot not in filled}
    return {str(place): _useful_share(mine, version, config, at) for place, mine in filled.items()} | loose


def _useful_share(mine: Sequence[Lease], version: Version, config: Config, at: datetime) -> float | None:
    """Return the useful part of the paid time of these leases today, with the time that is not metered yet."""
    ids = {lease.lease_id for lease in mine}
    counted = [line for line in version.lines if line.lease_id in ids and line.day == at.date()]
    works = {work.name: work for work in config.workloads}
    since = [
        part
        for lease in mine
        for part in phases.split(
            lease, at, (), phases.promise(works.get(lease.slot.workload)), phases.Ran(lease.run_since)
        )
        if part.day == at.date()
    ]
    paid = sum(line.paid for line in counted) + sum(part.paid for part in since)
    useful = sum(line.useful for line in counted)
    useful += sum(part.useful + part.redeemed - part.spoiled for part in since)
    return round(useful / paid, 4) if paid else None
