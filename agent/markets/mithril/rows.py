"""A bid with its machines -> an instance of ours.

The bid is the instance: it keeps its id while the market takes its machine away and gives it another one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from agent.domain import card_benchmarks
from agent.domain.market.gpu import GpuModel
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.price import PaidBill
from agent.domain.market.tenure import Tenure
from agent.domain.money import FREE, UsdPerHour
from agent.markets import labels, text, tolerant_rows
from agent.markets.mithril import figures, parse, prices, reach, start_script, states


@dataclass(frozen=True, slots=True)
class Known:
    """Facts that a bid's own record lacks: its kind of machine, the price that it pays, the instant of its notice.

    `disk_micros` is the operator's price of a gigabyte of disk per month.
    """

    kind: parse.InstanceType | None = None
    paid: UsdPerHour | None = None
    paid_since: datetime | None = None
    bill: PaidBill | None = None
    notice_at: datetime | None = None
    was_allocated: bool = False
    disk_micros: int | None = None


def newest(machines: Iterable[parse.Machine]) -> parse.Machine | None:
    """Return the machine that counts: one that may hold GPUs before one that ended, then the youngest."""
    return max(machines, key=lambda one: (states.is_live(one.status or ""), _made_at(one), one.fid), default=None)


def _made_at(machine: parse.Machine) -> datetime:
    """Return when a machine was made; an unreadable time counts as the oldest."""
    return tolerant_rows.moment(machine.created_at) or datetime.min.replace(tzinfo=UTC)


def standing(
    bid: parse.Bid, machine: parse.Machine | None, paused: states.PausedBids, *, was_allocated: bool
) -> states.Standing | None:
    """Return the state of a bid with its newest machine; None: it has ended."""
    has_end = tolerant_rows.moment(bid.deactivated_at) is not None
    if bid.status not in states.KNOWN and has_end:
        # The market lists all bids of the past. An unknown status must not revive one that has ended.
        return None
    had_one = was_allocated or bool(bid.instances) or machine is not None
    status = (machine.status or "?") if machine is not None else ""
    told = states.standing(bid.status or "", status, was_allocated=had_one, has_end=has_end)
    return paused.settled(bid.fid, bid.status or "", status, told)


def instance(bid: parse.Bid, machine: parse.Machine | None, where: states.Standing, known: Known) -> Instance:
    """Return a bid as an instance of ours; `unread` names missing and absurd fields."""
    ordered = start_script.ordered(bid.launch_specification.startup_script if bid.launch_specification else None)
    place, limit, gpus = bid.pool, prices.of_text(bid.limit_price), _gpus(bid, known.kind)
    is_waiting = where.state in {InstanceState.PENDING, InstanceState.PAUSED}
    # A bid that waits pays nothing. Its price is what it would pay, at most its limit.
    known_prices = [price for price in (known.paid, limit if is_waiting else None) if price is not None]
    paid = min(known_prices, default=None)
    model = known.kind.model if known.kind is not None else GpuModel("")
    read = {"gpu_rate": paid, "host_id": place, "gpus": gpus, "disk_gb": ordered, "limit": limit}
    read |= {"disk_rate": ordered if known.disk_micros is not None else None}
    is_shown = machine is not None and states.is_live(machine.status or "")
    destination = machine.ssh_destination if machine is not None and is_shown else None
    return Instance(
        market=parse.MARKET,
        instance_id=bid.fid,
        label=text.clean(bid.name or "", labels.MAX_LABEL),
        host_id=place.host_id if place is not None else "",
        owner_id="",
        tenure=Tenure.INTERRUPTIBLE,
        state=where.state,
        gpu=model,
        gpus=gpus or 0,
        gpu_rate=paid or FREE,
        disk_rate=_disk_rate(where, known, ordered),
        disk_gb=ordered.disk_gb if ordered is not None else 0.0,
        created_at=tolerant_rows.moment(bid.created_at),
        ends_at=None,
        dlperf=card_benchmarks.dlperf(model) * (gpus or 0),
        reliability=figures.RELIABILITY,
        inet_down_mbps=figures.INET_MBPS,
        is_wanted_running=where.is_wanted,
        address=reach.ssh(destination),
        ports=reach.ports(destination, ordered.ports if ordered is not None else ()),
        has_trouble=where.state is InstanceState.FAILED,
        message="the market shows the machine with STATUS_ERROR" if where.state is InstanceState.FAILED else "",
        may_bill_gpu=where.may_bill,
        unread=frozenset(name for name, figure in read.items() if figure is None),
        limit=limit,
        notice_at=known.notice_at,
        price_since=known.paid_since,
        bill=known.bill,
    )


def _gpus(bid: parse.Bid, kind: parse.InstanceType | None) -> int | None:
    quantity = 1 if bid.instance_quantity is None else bid.instance_quantity
    return kind.num_gpus * quantity if kind is not None and 0 < quantity <= parse.MOST_GPUS else None


def _disk_rate(where: states.Standing, known: Known, ordered: start_script.OrderedTerms | None) -> UsdPerHour:
    """Return the cost of a kept boot disk: zero before the first machine, and while a machine's price includes it."""
    if where.state is not InstanceState.PAUSED or not known.was_allocated or ordered is None:
        return FREE
    return UsdPerHour(round((known.disk_micros or 0) * ordered.disk_gb / figures.HOURS_A_MONTH))
