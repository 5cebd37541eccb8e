"""Terms -> the body of a new bid. Terms that the market would misread are refused before anything is sent.

Invariants:
1. Every bid is for one machine, and has a name of its own. If the answer is lost, the bid is found by its name.
2. A bid without a known price for its disk is never placed.
"""

from typing import Any

from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.markets import market_errors
from agent.markets.mithril import figures, names, prices, start_script
from agent.markets.port import Terms

NO_DISK_PRICE = (
    "mithril does not publish the price of a kept disk: set [markets.mithril] disk_per_gb_month to the figure of your "
    "bill before anything is rented there"
)


def create(project: str, offer: Offer, terms: Terms, label: str) -> dict[str, Any]:
    """Return the body of a bid for one machine.

    Raises:
        Rejected: the market cannot carry out these terms as meant.
    """
    where = names.pool(offer.host_id)
    if where is None:
        raise market_errors.Rejected("invalid_args", f"{offer.offer_id} is no offer of mithril.")
    if terms.tenure is not Tenure.INTERRUPTIBLE or terms.bid is None:
        raise market_errors.Rejected("invalid_price", f"this is no order for {terms.tenure.value} at bid {terms.bid}")
    if terms.network_volume:
        raise market_errors.Rejected("invalid_args", "A network volume of RunPod cannot be used at mithril.")
    script = start_script.text(terms)
    if (size := len(script.encode())) > figures.MOST_SCRIPT:
        most = f"{figures.MOST_SCRIPT} at most; let the workload fetch the rest"
        sentence = f"The start script has {size} bytes with its variables, {most}."
        raise market_errors.Rejected("invalid_args", sentence)
    return {
        "project": project,
        "region": where.region,
        "instance_type": where.instance_type,
        "limit_price": limit(terms.bid),
        "instance_quantity": 1,
        "name": names.bid_name(label),
        # The machine lets the workload's keys in by its start script: the market's keys are those of the project.
        "launch_specification": {"volumes": [], "ssh_keys": [], "startup_script": script},
    }


def limit(bid: UsdPerHour) -> str:
    """Return a bid as the market takes it.

    Raises:
        Rejected: it is less than a cent.
    """
    if bid < prices.CENT:
        raise market_errors.Rejected("invalid_price", f"a bid of {bid} is less than a cent")
    return prices.text(bid)
