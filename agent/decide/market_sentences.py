"""Sentences about the markets of a workload, for the explanation of its decisions."""

from collections.abc import Iterable, Iterator

from agent.decide.limits import credit_watch
from agent.domain import span_text
from agent.domain.fleet import Fleet
from agent.domain.market import market_notice
from agent.domain.market.market_rules import Settlement
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import FREE
from agent.domain.work.workload import Workload

_TENURES = {Tenure.INTERRUPTIBLE: "interruptible", Tenure.ON_DEMAND: "on demand"}


def notices(fleet: Fleet, work: Workload) -> Iterator[str]:
    """Yield the known notice before an interruption of each market of a workload with a guard."""
    if work.guard is not None:
        yield from (_notice(fleet, name) for name in sorted(fleet.markets) if work.may_use(name))


def of_volume(work: Workload, offers: Iterable[Offer]) -> str:
    """Return where the network volume of a workload is, and what that means; empty without a volume."""
    volume, rate = work.requirements.network_volume, work.network_volume_rate
    if not volume:
        return ""
    places = sorted({offer.region for offer in offers if volume in offer.network_volumes})
    where = f"is in {' and '.join(places)}" if places else "is where no offer is now, or does not exist"
    priced = f"budgets count {rate} for it by your figure" if rate > FREE else "its own price is in no budget"
    return (
        f"network volume {volume} {where}; a move keeps its data, both instances write to it until the old one is "
        f"released, and {priced}"
    )


def arrears(fleet: Fleet, work: Workload) -> Iterator[str]:
    """Yield a sentence for each market of a workload that sends its bill later."""
    for name in sorted(fleet.markets):
        if work.may_use(name) and fleet.rules_of(name).settlement is Settlement.ARREARS:
            yield credit_watch.IN_ARREARS.format(name)


def not_sold(fleet: Fleet, work: Workload) -> Iterator[str]:
    """Yield what the markets of a workload do not sell now, and why."""
    for name in sorted(fleet.markets):
        view = fleet.markets[name]
        if not work.may_use(name):
            continue
        if view.sells_nothing:
            yield f"{name} sells nothing now: {'; '.join(dict.fromkeys(view.not_sold.values()))}"
            continue
        for tenure, why in view.not_sold.items():
            yield f"{name} sells nothing {_TENURES[tenure]} now: {why}"


def _notice(fleet: Fleet, market: str) -> str:
    told = fleet.rules_of(market).notice
    if not told:
        return market_notice.of(market, fleet.guard_notices).sentence
    return f"notice before a loss to {market}: the market tells it {span_text.of(told)} before"
