"""Changes by a market or a host: a price that rises without our order, a tenure that is no longer sold."""

from collections.abc import Iterator

from agent.decide.facts import Alert
from agent.decide.pricing import bidding
from agent.domain.fleet import Fleet
from agent.domain.market.instance import Instance
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease

REPRICED = EventKind.LEASE_REPRICED


def not_sold(fleet: Fleet) -> Iterator[Alert]:
    """Yield one alert for each tenure that a market does not sell now; other tenures are still rented."""
    for name in sorted(fleet.markets):
        for tenure, why in fleet.markets[name].not_sold.items():
            yield Alert(
                EventKind.ALERT_NOT_SOLD, f"{name}/{tenure.value}", f"{why}; other tenures are rented as before"
            )


def price_rises(fleet: Fleet) -> Iterator[Alert]:
    """Yield one alert for each pending rise on a lease of ours: a person may accept it, else the lease ends in time."""
    asked = {(rise.market, rise.instance_id): rise for view in fleet.markets.values() for rise in view.rises}
    for held in fleet.leases:
        rise = asked.get((held.market, held.instance_id))
        if rise is None or not held.is_open:
            continue
        wanted = "" if rise.new_rate is None else f" of {UsdPerHour(rise.new_rate.micros * held.gpus)}"
        until = f" on {held.ends_at:%Y-%m-%d %H:%M} UTC" if held.ends_at is not None else ""
        sentence = (
            f"the host of {held.lease_id} ({held.slot}, {held.gpu_rate}) asks for a new price{wanted}; unless you "
            f"accept it at the market, the lease ends{until} and the workload is moved before"
        )
        yield Alert(EventKind.ALERT_PRICE_RISE, f"{held.lease_id}@{rise.event_id}", sentence)


def kind(held: Lease, row: Instance) -> EventKind | None:
    """Return the event of an on-demand lease that the market charges more for than before, or nothing."""
    is_dearer = row.gpu_rate - held.gpu_rate >= bidding.LEAST_STEP
    return REPRICED if held.tenure is Tenure.ON_DEMAND and is_dearer else None
