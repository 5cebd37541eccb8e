"""Terms -> the body of a create; what the market would misread is refused before anything leaves.

Invariants:
1. A bid is a number. The market reads a create without a price as on-demand at full price, and says nothing.
2. A bid goes out rounded up to the four decimals the market keeps: rounded down it is under the floor.
3. Every order carries a label: it is how a lost answer is found again.
"""

import shlex
from typing import Any

from agent.domain import money
from agent.domain.money import UsdPerHour
from agent.domain.tenure import Tenure
from agent.markets import errors, labels
from agent.markets.port import Terms

BID_PLACES = 4
LEAST_BID = money.per_hour("0.001")
MOST_BID = money.per_hour(128)
MOST_BID_PER_GPU = money.per_hour(32)
"""A standing bid may be changed to this for each GPU."""
LEAST_DISK_GB = 8.0


def create(terms: Terms, label: str) -> dict[str, Any]:
    """Return the body, every key of the vendor's own client in it.

    Raises:
        Rejected: the terms are none the market can carry out as meant.
    """
    if not label or len(label) > labels.MAX_LABEL:
        raise errors.Rejected("invalid_args", f"An order needs a label of 1 to {labels.MAX_LABEL} characters.")
    if terms.disk_gb < LEAST_DISK_GB:
        raise errors.Rejected("invalid_args", f"vast rents no disk under {LEAST_DISK_GB:g} GB; raise disk_gb.")
    return {
        "client_id": "me",
        "image": terms.image,
        # The market reads ports among the variables, as its own client writes them.
        "env": dict(terms.environment) | {f"-p {number}:{number}": "1" for number in terms.ports},
        "price": _price(terms),
        "disk": terms.disk_gb,
        "label": label,
        "extra": None,
        "onstart": terms.onstart or None,
        "image_login": None,
        "python_utf8": False,
        "lang_utf8": False,
        "use_jupyter_lab": False,
        "jupyter_dir": None,
        "force": False,
        # An on-demand order that cannot run at once would be parked, billing its disk.
        "cancel_unavail": terms.tenure is Tenure.ON_DEMAND,
        "template_hash_id": None,
        "user": None,
    } | _run(terms)


def bid_dollars(bid: UsdPerHour) -> float:
    """Return a bid as the market takes it.

    Raises:
        Rejected: it is outside of what the market takes.
    """
    rounded = money.rounded_up(bid, BID_PLACES)
    if not LEAST_BID <= rounded <= MOST_BID:
        raise errors.Rejected("invalid_price", f"vast takes bids from {LEAST_BID} to {MOST_BID}, not {bid}.")
    return rounded.dollars


def _price(terms: Terms) -> float | None:
    if terms.tenure is Tenure.INTERRUPTIBLE and terms.bid is not None:
        return bid_dollars(terms.bid)
    if terms.tenure is Tenure.ON_DEMAND and terms.bid is None:
        return None
    raise errors.Rejected("invalid_price", f"vast has no {terms.tenure.value} order at bid {terms.bid}.")


def _run(terms: Terms) -> dict[str, Any]:
    """Return how the container starts: with a command of its own, or with the market's shell that runs `onstart`."""
    if not terms.command:
        return {"runtype": "ssh"}
    try:
        return {"runtype": "args", "args": shlex.split(terms.command)}
    except ValueError as error:
        raise errors.Rejected("invalid_args", f"The command cannot be split into words ({error}); mend it.") from None
