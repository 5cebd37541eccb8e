"""Protections: after repeated trouble of one kind, its subject gets a cooldown.

A protection counts incidents of some kinds for a subject, such as a model of a market. It has a look-back time, a
number of incidents that it bears, and the length and kind of its cooldown. `gpubid fleet` shows the cooldown with its
reason. `gpubid unlock SCOPE:KEY` lifts it.

Invariants:
1. A protection never pays and never releases. It only prevents new rents.
2. An incident counts once: after a protection was triggered, or its cooldown lifted, the count begins again.
3. A market that rents what was not ordered gets a cooldown after each such rent, twice as long as the one before, until
   a rent there runs: a market whose every answer is wrong costs few rents an hour.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.decide.pricing import cooldowns
from agent.domain import span_text
from agent.domain.market.host import OwnerKey
from agent.domain.market.interruption import Cause
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.record.cooldown import Cooldown, CooldownKind, Cooling
from agent.domain.record.event_kind import EventKind

OF_THE_MARKET = frozenset({Cause.OUTBID, Cause.DISPLACED})
OF_THE_HOST = frozenset({Cause.HOST_OFFLINE, Cause.HOST_GONE})
NOT_OF_A_MARKET = cooldowns.OF_OURS | cooldowns.OF_THE_WORK | {cooldowns.WITHHELD}
"""Refusals that say nothing about the market that gave them."""


@dataclass(frozen=True, slots=True)
class Incident:
    """One trouble, from an event of the ledger. Unknown parts are empty."""

    at: datetime
    kind: EventKind
    market: str
    gpu: str = ""
    host_id: str = ""
    owner_id: str = ""
    cause: Cause | None = None
    """The cause of an interruption; None for trouble of another kind."""
    code: str = ""
    """The code of a refusal, or of a rent that was not as ordered."""


@dataclass(frozen=True, slots=True)
class TriggeredProtection:
    """A protection that was triggered."""

    cooldown: Cooldown
    """The new cooldown of its subject."""
    protection: str
    """The protection's name."""
    market: str
    """The market of the first incident."""
    sentence: str
    """What happened, and the cooldown, for the operator."""


Grouping = Callable[[Incident], str]
"""The key under which an incident counts, or an empty text if this protection ignores it."""


@dataclass(frozen=True, slots=True)
class Protection:
    """More than `bears` incidents (plus one for every lease at risk) within `lookback` start a cooldown of `length`."""

    name: CooldownKind
    """The kind of its cooldowns."""
    counts: Grouping
    lookback: timedelta
    bears: int
    length: timedelta
    reason: str
    """The incidents in words that follow their number."""
    is_by_host: bool = False
    """Whether several incidents on one host count once."""
    longest: timedelta | None = None
    """The longest cooldown, if each one is twice as long as the one before."""
    one: str = ""
    """`reason` of a single incident, where one is enough."""

    def length_after(self, earlier: int) -> timedelta:
        """Return the length of a cooldown that follows this many in a row."""
        return self.length if self.longest is None else min(self.length * 2 ** min(earlier, 16), self.longest)

    def tripped(
        self,
        incidents: Iterable[Incident],
        exposed: Mapping[str, int],
        since: Mapping[str, datetime],
        now: datetime,
        earlier: Mapping[str, int],
    ) -> Iterator[TriggeredProtection]:
        """Yield the new cooldowns.

        `exposed` are leases at risk by key. `since` is the last trigger by place, and `earlier` the number of triggers
        in a row.
        """
        found: dict[str, list[Incident]] = {}
        for incident in incidents:
            key = self.counts(incident)
            if key and max(since.get(f"{self.name}:{key}", now - self.lookback), now - self.lookback) < incident.at:
                found.setdefault(key, []).append(incident)
        for key, mine in sorted(found.items()):
            count = len({(incident.market, incident.host_id) for incident in mine}) if self.is_by_host else len(mine)
            if count > self.bears + exposed.get(key, 0):
                length = self.length_after(earlier.get(f"{self.name}:{key}", 0))
                what = self.reason if count > 1 else self.one or self.reason
                trouble = f"{count} {what} within {span_text.of(self.lookback)}"
                sentence = f"{trouble}: {key} gets a cooldown of {span_text.of(length)}"
                yield TriggeredProtection(
                    Cooldown(self.name, key, now + length, sentence), self.name, mine[0].market, sentence
                )


def of_model(market: str, gpu: str) -> str:
    """Return the key of a GPU model on a market."""
    return f"{market}/{gpu}"


def _stormy(incident: Incident) -> str:
    is_one = incident.kind == EventKind.LEASE_INTERRUPTED and incident.cause in OF_THE_MARKET
    return of_model(incident.market, incident.gpu) if is_one and incident.gpu else ""


def _failing(incident: Incident) -> str:
    return of_model(incident.market, incident.gpu) if incident.kind == EventKind.LEASE_FAILED and incident.gpu else ""


def _refused(incident: Incident) -> str:
    is_of_market = incident.kind == EventKind.INTENT_REJECTED and incident.code not in NOT_OF_A_MARKET
    return incident.market if is_of_market else ""


def _mismatched(incident: Incident) -> str:
    is_one = incident.kind == EventKind.LEASE_MISMATCHED and incident.code != cooldowns.USED_BEFORE
    return incident.market if is_one else ""


def _used_before(incident: Incident) -> str:
    is_one = incident.kind == EventKind.LEASE_MISMATCHED and incident.code == cooldowns.USED_BEFORE
    return incident.market if is_one else ""


def _of_owner(incident: Incident) -> str:
    is_one = incident.cause in OF_THE_HOST and bool(incident.owner_id)
    return str(OwnerKey(incident.market, incident.owner_id)) if is_one else ""


ALL = (
    # Three to five losses a day and lease are common; this many in an hour mean many rivals who outbid everything.
    Protection(
        CooldownKind.STORM, _stormy, timedelta(hours=1), 3, timedelta(minutes=30), "interruptions by the market"
    ),
    # Images that fail on this many hosts of one model rarely fail by chance; the cause is a driver, a registry or a bad
    # batch.
    Protection(
        CooldownKind.STARTS,
        _failing,
        timedelta(hours=2),
        3,
        timedelta(hours=1),
        "hosts that failed to start",
        is_by_host=True,
    ),
    # Each refusal costs a search. After this many the listing needs time to become right.
    Protection(CooldownKind.REJECTED, _refused, timedelta(minutes=15), 7, timedelta(minutes=10), "refused orders"),
    # The host of the rent gets a cooldown of its own. A wrong offer is rare, and a market whose answers are wrong shows
    # every rent so: the next one waits for better answers.
    Protection(
        CooldownKind.MARKET,
        _mismatched,
        timedelta(minutes=2),
        0,
        timedelta(minutes=2),
        "rents that were not as ordered",
        longest=timedelta(hours=1),
        one="rent that was not as ordered",
    ),
    # A market that lets machines go late gives one of them again now and then. One that gives no others costs a start
    # each time.
    Protection(
        CooldownKind.MARKET,
        _used_before,
        timedelta(minutes=30),
        2,
        timedelta(minutes=10),
        "rents of machines that were used before",
        longest=timedelta(hours=1),
    ),
    # Hosts of one owner are in one room and become silent together.
    Protection(
        CooldownKind.OWNER,
        _of_owner,
        timedelta(hours=6),
        2,
        timedelta(hours=6),
        "hosts of one owner lost",
        is_by_host=True,
    ),
)
"""The shipped protections. The numbers are judgements, not measurements; each names its grounds."""
LOOKBACK = max(protection.lookback for protection in ALL)


def is_barred(offer: Offer, tenure: Tenure, cooling: Cooling | None) -> bool:
    """Return whether a protection bars this way to rent an offer.

    `offer_refusal` checks the cooldowns of owners and markets.
    """
    if not cooling:
        return False
    model = of_model(offer.market, offer.gpu)
    if model in cooling.get(CooldownKind.STARTS, {}) or offer.market in cooling.get(CooldownKind.REJECTED, {}):
        return True
    return tenure is Tenure.INTERRUPTIBLE and model in cooling.get(CooldownKind.STORM, {})


def tripped(
    incidents: Iterable[Incident],
    exposed: Mapping[str, int],
    since: Mapping[str, datetime],
    now: datetime,
    earlier: Mapping[str, int] | None = None,
) -> tuple[TriggeredProtection, ...]:
    """Return the cooldowns of all protections now."""
    known = tuple(incidents)
    return tuple(trip for each in ALL for trip in each.tripped(known, exposed, since, now, earlier or {}))
