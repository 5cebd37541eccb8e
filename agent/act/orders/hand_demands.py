"""A person's demand of a workload: how many slots it is to have, for a time."""

from collections.abc import Iterable
from datetime import datetime

from agent.act.orders.order_error import OrderError
from agent.domain.slot_demand import HandDemand
from agent.domain.work.order import Order
from agent.domain.work.workload import Workload


def of(order: Order, workloads: Iterable[Workload], now: datetime) -> tuple[str, HandDemand]:
    """Return the meaning of an order as a sentence and as a record; an order without slots ends the earlier demand.

    Raises:
        OrderError: its target has no demand, or its number or its time is missing or out of range.
    """
    known = {work.name: work for work in workloads if work.demand is not None}
    work = known.get(order.target)
    if work is None:
        named = f"these have one: {', '.join(known)}" if known else "no workload has one; see `demand` in agent.toml"
        raise OrderError("no_demand", f"{order.target} is no workload with a demand; {named}")
    if order.slots is None:
        return f"the demand of {work.name} is read again", HandDemand(work.name, 0, now)
    if order.span is None or not 0 <= order.slots <= work.slots:
        raise OrderError("out_of_range", f"write 0 to {work.slots} slots and for how long, for example --for 1h")
    until = now + order.span
    sentence = f"{work.name} is to have {order.slots} slot(s) until {until:%Y-%m-%d %H:%M} UTC"
    return sentence, HandDemand(work.name, order.slots, until)
