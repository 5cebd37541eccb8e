"""Why a lease stopped running: one of nine causes, decided in a fixed order, with the evidence.

The market's own fields are equal for a user's stop, an outbid, an on-demand take-over and an empty account. The order
below is the usual practice. Unknown is a valid answer.
"""

from collections.abc import Iterable
from datetime import datetime

from agent.decide.pricing import bidding
from agent.domain.fleet import MarketView
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.interruption import Cause, Evidence, MarketEvent, MarketEventKind
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import per_hour
from agent.domain.record.lease import Lease

_PLAIN = {
    MarketEventKind.BID_LOST: (Cause.OUTBID, "outbid"),
    MarketEventKind.STOPPED_BY_MARKET: (Cause.UNKNOWN, "the market stopped it, and does not say why"),
}
"""Causes of the kinds of events that need no price."""
_TELLING = frozenset({MarketEventKind.OUTBID, *_PLAIN})
INBOX = "inbox"
"""The rule that decides by the market's inbox."""
_CREDIT, _END_DATE, _RECORD = "credit", "end_date", "market_record"
PROVEN = frozenset({INBOX, _CREDIT, _END_DATE, _RECORD})
"""The rules by which the market itself, or the contract, says why a stopped instance stopped."""
INBOX_ROUNDING = per_hour("0.005")
"""The inbox has prices with two decimals: the winner may have bid half a cent more."""


def of_row(lease: Lease, row: Instance, view: MarketView, since: datetime, now: datetime) -> tuple[Cause, Evidence]:
    """Return why a lease that was last seen running at `since` stopped, as its row shows it."""
    if row.stopped_from_outside:
        sentence = f"the market's own record says that neither host nor container ended it: {row.stopped_from_outside}"
        return Cause.EXTERNAL_STOP, Evidence(_RECORD, sentence)
    if lease.bid_limit is not None and row.state is InstanceState.PAUSED and not row.is_wanted_running:
        # No auction picks such a bid, and we did not stop it.
        return Cause.EXTERNAL_STOP, Evidence("parked", "the market shows its bid as paused, and we did not pause it")
    return of_stop(lease, row.state, view, since, now, row.message)


def of_stop(
    lease: Lease, state: InstanceState, view: MarketView, since: datetime, now: datetime, row_message: str = ""
) -> tuple[Cause, Evidence]:
    """Return why a lease that was last seen running at `since` is now in `state`, without a reason in its row."""
    if state is InstanceState.OFFLINE:
        return Cause.HOST_OFFLINE, Evidence("host_state", "the market says that the host does not answer")
    if state is InstanceState.FAILED:
        said = row_message or "nothing"
        return Cause.UNKNOWN, Evidence("host_daemon", f"the host could not start it; its daemon said: {said}")
    if state is InstanceState.EXITED:
        return Cause.CONTAINER_EXIT, Evidence("container_state", "the container ended while the GPU was still held")
    if view.credit is not None and view.credit.micros <= 0:
        return Cause.OUT_OF_CREDIT, Evidence(_CREDIT, f"the account's credit is {view.credit}")
    if lease.ends_at is not None and lease.ends_at <= now:
        return Cause.CONTRACT_END, _of_end_date(lease.ends_at)
    event = _event(lease, view.events, since)
    if event is not None:
        return _of_event(lease, event)
    return _of_offers(lease, view)


def of_absence(lease: Lease, now: datetime) -> tuple[Cause, Evidence]:
    """Return why an instance is gone for good."""
    if lease.ends_at is not None and lease.ends_at <= now:
        return Cause.CONTRACT_END, _of_end_date(lease.ends_at)
    return Cause.HOST_GONE, Evidence(
        "no_such_instance", "the market says there is no such instance, and two listings agree"
    )


def _of_end_date(ends_at: datetime) -> Evidence:
    return Evidence(_END_DATE, f"the host rented the GPU out until {ends_at:%Y-%m-%d %H:%M} UTC, which has passed")


def _event(lease: Lease, events: Iterable[MarketEvent], since: datetime) -> MarketEvent | None:
    matching = [
        event
        for event in events
        if event.instance_id == lease.instance_id and event.kind in _TELLING and event.at >= since
    ]
    return max(matching, key=lambda event: event.at, default=None)


def _of_event(lease: Lease, event: MarketEvent) -> tuple[Cause, Evidence]:
    """Return the cause by an event. A winner above our bid and below the ask is a bidder, any other rents on demand."""
    plain = _PLAIN.get(event.kind)
    if plain is not None:
        return plain[0], Evidence(_RECORD, f"the market's own record says at {event.at:%H:%M:%S}: {plain[1]}")
    winner = event.new_floor
    told_floor = winner or "not given"
    sentence = f"the market's inbox says outbid at {event.at:%H:%M:%S}: new floor {told_floor}, our bid {lease.bid}"
    if winner is None:
        return Cause.DISPLACED, Evidence(INBOX, sentence)
    most = winner + INBOX_ROUNDING
    is_bid = most > lease.bid and (lease.ask is None or most < lease.ask)
    return Cause.OUTBID if is_bid else Cause.DISPLACED, Evidence(INBOX, sentence, most)


def _of_offers(lease: Lease, view: MarketView) -> tuple[Cause, Evidence]:
    """Return the cause by the slice's present offer in a search, without the market's own record."""
    rows = [offer for offer in view.offers_on(lease.host_id) if offer.gpus == lease.gpus]
    if lease.tenure is not Tenure.INTERRUPTIBLE:
        return Cause.EXTERNAL_STOP, Evidence("tenure", "on-demand cannot be outbid: somebody stopped it")
    if not rows:
        return Cause.UNKNOWN, Evidence("none", "the market keeps no record of it and lists no offer of the host")
    return _of_floor(lease, rows)


def _of_floor(lease: Lease, rows: list[Offer]) -> tuple[Cause, Evidence]:
    floors = [row.floor for row in rows if row.floor is not None]
    taken = Cause.UNKNOWN if lease.notice_at is None else Cause.DISPLACED
    if not floors and any(row.is_price_unknown for row in rows):
        return taken, Evidence("no_price", f"nobody can say which bid wins in {lease.host_id} now")
    if not floors:
        return Cause.DISPLACED, Evidence("no_floor", "the host lists no slice that can be bid for")
    floor = min(floors)
    if bidding.is_echo(lease, floor):
        return Cause.UNKNOWN, Evidence("echo", f"the host lists the slice at {floor}, which is our own bid", floor)
    if floor > lease.bid:
        return Cause.OUTBID, Evidence(
            "floor", f"the host lists the slice at a floor of {floor}, above our {lease.bid}", floor
        )
    if lease.bid_limit is not None:
        sentence = f"a bid of {floor} wins now, not above our {lease.bid}: an earlier auction may have taken it"
        return taken, Evidence("floor", sentence, floor)
    sentence = f"the host lists the slice at a floor of {floor}, not above our {lease.bid}: nobody bid more"
    return Cause.EXTERNAL_STOP, Evidence("floor", sentence, floor)
