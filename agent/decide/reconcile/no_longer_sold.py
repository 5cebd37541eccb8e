"""What a market stopped selling to the account, said once while it lasts; what can still be rented goes on."""

from collections.abc import Iterator

from agent.decide.reconcile.facts import Alert
from agent.domain.fleet import Fleet


def alerts(fleet: Fleet) -> Iterator[Alert]:
    """Yield one alert for each tenure that a market does not sell now."""
    for name in sorted(fleet.markets):
        for tenure, why in fleet.markets[name].not_sold.items():
            yield Alert("not_sold", f"{name}/{tenure.value}", f"{why}; other tenures are rented as before")
