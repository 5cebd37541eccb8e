"""Alerts about a market: rising prices, tenures not sold, wrong rents, orders not carried out, unclear states."""

from collections.abc import Iterator
from datetime import timedelta

from msgspec.structs import replace

from agent.decide.facts import Alert
from agent.decide.pricing import bidding, cooldowns
from agent.domain.fleet import Fleet
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.record.cooldown import CooldownKind
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.record.tally import Counted, Tally

REPRICED = EventKind.LEASE_REPRICED
REFUSED_FOR = timedelta(minutes=15)
"""An order that its market has not carried out for this long is reported: by then other ways have been tried."""

UNKNOWN_FOR = timedelta(minutes=15)
"""A state or a price that is unknown for this long is reported: markets have shown wrong fields for ten minutes."""
_IN_WORDS = {cooldowns.RAISE: "raise the bid of", cooldowns.LOWER: "lower the bid of"}


def alerts(fleet: Fleet) -> Iterator[Alert]:
    """Yield one alert for each rise that waits, tenure not sold, wrong rent, refused order, and what is not known."""
    yield from price_rises(fleet)
    yield from not_sold(fleet)
    yield from not_as_ordered(fleet)
    yield from refused(fleet)
    yield from of_unknown_state(fleet)
    yield from of_unread_price(fleet)
    yield from of_unproven_end(fleet)


def not_sold(fleet: Fleet) -> Iterator[Alert]:
    """Yield one alert for each tenure that a market does not sell now, or one for a market that sells nothing."""
    for name in sorted(fleet.markets):
        view = fleet.markets[name]
        if view.sells_nothing:
            why = "; ".join(dict.fromkeys(view.not_sold.values()))
            said = f"{why}; until then nothing is rented on {name}, and leases there go on"
            yield Alert(EventKind.ALERT_NOT_SOLD, name, said)
            continue
        for tenure, why in view.not_sold.items():
            sentence = f"{why}; other tenures are rented as before"
            yield Alert(EventKind.ALERT_NOT_SOLD, f"{name}/{tenure.value}", sentence)


def not_as_ordered(fleet: Fleet) -> Iterator[Alert]:
    """Yield one alert for each market that is in cooldown because it rented what was not ordered."""
    for rest in fleet.cooldowns:
        if rest.kind is CooldownKind.MARKET and not rest.is_over(fleet.now):
            sentence = (
                f"{rest.ground}; nothing is rented on {rest.key} until {rest.until:%H:%M} UTC, and leases there go on. "
                "`gpubid ledger events --kind lease.mismatched` shows what differed; if that is right at the market, "
                f"`gpubid unlock market:{rest.key}` rents there again at once"
            )
            yield Alert(EventKind.ALERT_NOT_AS_RENTED, f"market:{rest.key}", sentence)


def price_rises(fleet: Fleet) -> Iterator[Alert]:
    """Yield one alert for each pending rise on a lease of ours. A person may accept it; otherwise the lease ends."""
    asked = {(rise.market, rise.instance_id): rise for view in fleet.markets.values() for rise in view.rises}
    for lease in fleet.leases:
        rise = asked.get((lease.market, lease.instance_id))
        if rise is None or not lease.is_open:
            continue
        wanted = "" if rise.new_rate is None else f" of {UsdPerHour(rise.new_rate.micros * lease.gpus)}"
        until = f" on {lease.ends_at:%Y-%m-%d %H:%M} UTC" if lease.ends_at is not None else ""
        sentence = (
            f"the host of {lease.lease_id} ({lease.slot}, {lease.gpu_rate}) asks for a new price{wanted}; unless you "
            f"accept it at the market, the lease ends{until} and the workload is moved before"
        )
        yield Alert(EventKind.ALERT_PRICE_RISE, f"{lease.lease_id}@{rise.event_id}", sentence)


def of_unknown_state(fleet: Fleet) -> Iterator[Alert]:
    """Yield one alert for each lease whose state its market has shown as unknown for long: only a person can judge it.

    A lease that counts as billing is not metered in the ledger while its state is unknown. `refused` has those whose
    release is overdue.
    """
    for lease in fleet.leases:
        view = fleet.markets.get(lease.market)
        row = view.instance(lease.instance_id) if view is not None and view.is_fresh else None
        is_unknown = row is not None and row.state is InstanceState.UNKNOWN and lease.bills is Bills.GPU_AND_DISK
        may_go_on = lease.is_open and lease.state is not LeaseState.RELEASING
        if not is_unknown or not may_go_on or fleet.now - lease.accrued_until < UNKNOWN_FOR:
            continue
        sentence = (
            f"{lease.market} has shown no clear state of {lease.lease_id} ({lease.slot}) since "
            f"{lease.accrued_until:%H:%M} UTC: it counts at {lease.billing_rate}, and its slot waits. Look at instance "
            f"{lease.instance_id} at the market itself; if nothing runs there, `gpubid release {lease.lease_id}` gives "
            "it up with its disk, and its slot is rented anew"
        )
        yield Alert(EventKind.ALERT_STATE_UNKNOWN, lease.lease_id, sentence)


def of_unread_price(fleet: Fleet) -> Iterator[Alert]:
    """Yield one alert for each lease that bills and whose market has shown no clear price for long."""
    for lease in fleet.leases:
        view = fleet.markets.get(lease.market)
        row = view.instance(lease.instance_id) if view is not None and view.is_fresh else None
        since, is_billing = lease.agreed_until, lease.is_open and lease.bills is Bills.GPU_AND_DISK
        if row is None or "gpu_rate" not in row.unread or since is None or not is_billing:
            continue
        if fleet.now - since < UNKNOWN_FOR:
            continue
        sentence = (
            f"{lease.market} has shown no clear price of {lease.lease_id} ({lease.slot}) since {since:%H:%M} UTC: it "
            f"counts at {lease.gpu_rate}; compare it with the market's bill"
        )
        yield Alert(EventKind.ALERT_RATE_DOUBTED, f"{lease.lease_id}@unread", sentence)


def of_unproven_end(fleet: Fleet) -> Iterator[Alert]:
    """Yield one alert for each lease that its market lists as over without a proof: only a person's word ends it."""
    for lease in fleet.leases:
        view = fleet.markets.get(lease.market)
        row = view.instance(lease.instance_id) if view is not None else None
        if row is None or not row.is_called_over or not lease.is_open or lease.bills is Bills.NOTHING:
            continue
        why = row.message or f"{lease.market} lists instance {lease.instance_id} as over, without a proof"
        sentence = (
            f"{why} ({lease.host_id}). {lease.slot} counts on at {lease.billing_rate}. If the machine is there, end "
            f"it; once it is gone, say `gpubid release {lease.lease_id} --gone`"
        )
        yield Alert(EventKind.ALERT_STATE_UNKNOWN, f"{lease.lease_id}@unproven", sentence)


def refused(fleet: Fleet) -> Iterator[Alert]:
    """Yield one alert for each kind of order on a lease that its market keeps refusing or does not carry out."""
    for lease in fleet.leases:
        if lease.state is LeaseState.RELEASING:
            yield from _unreleased(fleet, lease)
        elif lease.is_open:
            yield from _untaken(fleet, lease)


def _unreleased(fleet: Fleet, lease: Lease) -> Iterator[Alert]:
    """Yield an alert for a lease whose release is long overdue and that bills, or is listed as billing.

    After a confirmed release the lease counts as billing nothing, but a later listing that still shows the instance
    outranks that.
    """
    view = fleet.markets.get(lease.market)
    row = view.instance(lease.instance_id) if view is not None else None
    is_over = fleet.is_called_over(lease)  # other alerts have the way on
    if lease.bills is Bills.NOTHING and row is not None and view is not None and row.state is not InstanceState.OFFLINE:
        lease = replace(lease, bills=Bills.GPU_AND_DISK if row.bills_gpu else Bills.DISK)
        due_for = (view.listed_at or lease.state_since) - lease.state_since
    else:
        due_for = fleet.now - lease.state_since
    if lease.bills is Bills.NOTHING or due_for < REFUSED_FOR or is_over:
        return
    sentence = (
        f"{lease.market} has not carried out the release of {lease.lease_id} ({lease.slot}) that was ordered at "
        f"{lease.state_since:%H:%M} UTC: it bills {lease.billing_rate}. gpubid orders it again every minute; end "
        f"instance {lease.instance_id} at the market itself"
    )
    yield Alert(EventKind.ALERT_ORDER_REFUSED, f"{lease.lease_id}@release", sentence)


def _untaken(fleet: Fleet, lease: Lease) -> Iterator[Alert]:
    """Yield an alert for each kind of order that the market refuses as a request."""
    for tally in fleet.tallies:
        if (tally.counted, tally.of) != (Counted.UNTAKEN, lease.lease_id) or tally.is_over(fleet.now):
            continue
        if tally.count < cooldowns.UNTAKEN_MOST or fleet.now - tally.since < REFUSED_FOR:
            continue
        if tally.since < lease.state_since:
            # The refusal was in another state of the lease. That order may no longer be needed.
            continue
        yield Alert(EventKind.ALERT_ORDER_REFUSED, f"{lease.lease_id}@{tally.where}", _untaken_sentence(lease, tally))


def _untaken_sentence(lease: Lease, tally: Tally) -> str:
    """Return the alert's sentence.

    It does not advise to give up a lease that works or of which only the price is at stake.
    """
    order = _IN_WORDS.get(tally.where, tally.where)
    refused = (
        f"{lease.market} refuses every order to {order} {lease.lease_id} ({lease.slot}) since {tally.since:%H:%M} UTC "
        f"({tally.ground})"
    )
    if tally.where == cooldowns.LOWER or (tally.where == cooldowns.RAISE and lease.state is not LeaseState.PAUSED):
        return f"{refused}: it goes on at {lease.gpu_rate}, and gpubid goes on trying"
    return (
        f"{refused}: it bills {lease.billing_rate}. gpubid goes on trying; "
        f"`gpubid release {lease.lease_id}` gives it up with its disk, and its slot is rented anew"
    )


def kind(lease: Lease, row: Instance) -> EventKind | None:
    """Return the event of an on-demand lease that the market charges more for than before, or nothing."""
    is_dearer = row.gpu_rate - lease.gpu_rate >= bidding.LEAST_STEP
    return REPRICED if lease.tenure is Tenure.ON_DEMAND and is_dearer else None
