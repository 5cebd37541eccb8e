"""Notices about the whole fleet: why nothing is paid for, and the fix."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from agent.decide.limits import limits
from agent.domain.fleet import MarketView
from agent.domain.record.lease import Lease, LeaseState

LEADS = "leads"
"""The code of a notice that says nothing but who leads."""


@dataclass(frozen=True, slots=True)
class Notice:
    """One sentence about a market, the ledger, the daemon or a held lease, with a code for programs."""

    about: str
    code: str
    sentence: str


def notices(
    views: Mapping[str, MarketView], stopped_because: str, of_ledger: Sequence[Notice] = (), why_unwritable: str = ""
) -> tuple[Notice, ...]:
    """Return the notices about why the daemon does not pay, its own state first, then `of_ledger`.

    `stopped_because` and `why_unwritable` are whole sentences with their fix, or empty.
    """
    own = (*_of_daemon(stopped_because, why_unwritable), *of_ledger)
    said = {stopped_because, *(notice.sentence for notice in of_ledger)}
    return (*own, *_of_markets(views.values(), said))


def of_leader(place: str, since: datetime, beat_age_seconds: float, *, is_shown: bool) -> Notice:
    """Return who leads a fleet whose ledger is on a server, since when, and how old the leader's last beat is."""
    beat = f"its last beat is {beat_age_seconds:.0f} s old"
    if is_shown:
        return Notice("leader", LEADS, f"{place} leads since {since:%Y-%m-%d %H:%M:%S} UTC; {beat}")
    sentence = f"{place} led since {since:%Y-%m-%d %H:%M:%S} UTC and cannot show that it still does: {beat}"
    return Notice("leader", "unled", f"{sentence}, so it sends nothing; see `gpubid doctor`")


def held_back(leases: Iterable[Lease]) -> Iterator[Notice]:
    """Yield each lease that waits for a person to adopt or release it."""
    for lease in leases:
        if lease.is_held and lease.state is not LeaseState.RELEASING:
            name = lease.lease_id
            sentence = (
                f"has our label and fills no slot: it bills {lease.billing_rate}, and gpubid does not touch it until "
                f"`gpubid adopt {name} --into WORKLOAD/SLOT` or `gpubid release {name}`"
            )
            yield Notice(name, "held", sentence)


def _of_daemon(stopped_because: str, why_unwritable: str) -> Iterator[Notice]:
    if stopped_because:
        yield Notice("daemon", "writing_stopped", stopped_because)
    if why_unwritable:
        yield Notice("ledger", "unwritable", f"{why_unwritable}; running leases go on")


def _of_markets(views: Iterable[MarketView], said: Collection[str]) -> Iterator[Notice]:
    for view in views:
        notice = _of_market(view)
        if notice is not None and not (view.no_spend_because and view.no_spend_because in said):
            yield notice


def _of_market(view: MarketView) -> Notice | None:
    if not view.is_fresh:
        return Notice(view.market, "unreadable", _unreadable(view))
    if view.no_spend_because:
        return Notice(view.market, "no_spend", f"nothing is paid for: {view.no_spend_because}")
    if view.is_skewed:
        return Notice(view.market, "clock_skew", _skewed(view))
    if view.credit is not None and view.credit.micros <= 0:
        return Notice(
            view.market, "no_credit", f"the account's credit is {view.credit}: top it up; then gpubid continues"
        )
    return None


def _unreadable(view: MarketView) -> str:
    why = view.trouble or "no answer"
    if view.listed_at is None:
        return (
            f"its listing could not be read yet: {why.rstrip('.')}; nothing is paid for until it is; see `gpubid "
            "doctor`"
        )
    return (
        f"its listing cannot be read since {_minute(view.listed_at)} UTC: {why.rstrip('.')}; "
        "leases that ran then count as running, nothing is paid for, and nothing is believed gone; see `gpubid "
        "doctor`"
    )


def _minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


def _skewed(view: MarketView) -> str:
    return (
        f"the clock of this machine is {limits.skew(view)}: set it right (`timedatectl set-ntp true`); "
        "until then nothing is paid for, and time is counted without it"
    )
