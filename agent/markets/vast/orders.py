"""Terms -> the body of a create. Terms that the market would misread are refused before anything is sent.

Invariants:
1. A bid is a number. The market reads a create without a price as on-demand at full price, and says nothing.
2. A bid is sent rounded up to the four decimals that the market keeps: rounded down, it would be under the floor.
3. Every order carries a label: it is how a lost answer is found again.
"""

import shlex
from typing import Any

from agent.domain import money
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.work.workload import Runtype
from agent.markets import labels, market_errors
from agent.markets.port import Terms
from agent.markets.vast import rules

_RUNTYPES = {
    Runtype.AUTO: "ssh",
    Runtype.SSH: "ssh",
    # The second word has the spelling of the vendor's own client.
    Runtype.SSH_DIRECT: "ssh_direc ssh_proxy",
    Runtype.JUPYTER: "jupyter_proxy ssh_proxy",
}
_LET_IN = "~/.ssh/authorized_keys"
_KEY = "gpubid_key"
"""The script has each key once: it is short, and some keys are long."""
BID_PLACES = 4
LEAST_BID = money.per_hour("0.001")
MOST_BID = money.per_hour(128)
LEAST_DISK_GB = 8.0


def create(terms: Terms, label: str) -> dict[str, Any]:
    """Return the body, with every key of the vendor's own client.

    Raises:
        Rejected: the market cannot carry out these terms as meant.
    """
    if not label or len(label) > labels.MAX_LABEL:
        raise market_errors.Rejected("invalid_args", f"An order needs a label of 1 to {labels.MAX_LABEL} characters.")
    if terms.disk_gb < LEAST_DISK_GB:
        raise market_errors.Rejected("invalid_args", f"vast rents no disk under {LEAST_DISK_GB:g} GB; raise disk_gb.")
    script = _onstart(terms)
    if len(script) > rules.MOST_SCRIPT:
        most = f"vast takes {rules.MOST_SCRIPT}; let the script fetch the rest"
        raise market_errors.Rejected("invalid_args", f"The start script has {len(script)} characters, {most}.")
    return {
        "client_id": "me",
        "image": terms.image,
        # The market reads ports among the variables, as its own client writes them.
        "env": dict(terms.environment) | {f"-p {number}:{number}": "1" for number in terms.ports},
        "price": _price(terms),
        "disk": terms.disk_gb,
        "label": label,
        "extra": None,
        "onstart": script or None,
        "image_login": _login(terms),
        "python_utf8": False,
        "lang_utf8": False,
        "use_jupyter_lab": False,
        "jupyter_dir": None,
        "force": False,
        # An on-demand order that cannot run at once would be parked, with a billing disk.
        "cancel_unavail": terms.tenure is Tenure.ON_DEMAND,
        "template_hash_id": terms.template or None,
        "user": None,
    } | _run(terms)


def bid_dollars(bid: UsdPerHour) -> float:
    """Return a bid in the market's format.

    Raises:
        Rejected: it is outside the market's range.
    """
    rounded = money.rounded_up(bid, BID_PLACES)
    if not LEAST_BID <= rounded <= MOST_BID:
        raise market_errors.Rejected("invalid_price", f"vast takes bids from {LEAST_BID} to {MOST_BID}, not {bid}.")
    return rounded.dollars


def _price(terms: Terms) -> float | None:
    if terms.tenure is Tenure.INTERRUPTIBLE and terms.bid is not None:
        return bid_dollars(terms.bid)
    if terms.tenure is Tenure.ON_DEMAND and terms.bid is None:
        return None
    raise market_errors.Rejected("invalid_price", f"vast has no {terms.tenure.value} order at bid {terms.bid}.")


def _run(terms: Terms) -> dict[str, Any]:
    """Return how the container starts: with its own command, or with the market's shell that runs `onstart`."""
    if not terms.command and terms.runtype is not Runtype.ARGS:
        # With a template and no command of ours, the template decides.
        return {} if terms.template and terms.runtype is Runtype.AUTO else {"runtype": _RUNTYPES[terms.runtype]}
    try:
        return {"runtype": "args", "args": shlex.split(terms.command)}
    except ValueError as error:
        raise market_errors.Rejected(
            "invalid_args", f"The command cannot be split into words ({error}); fix it."
        ) from None


def _onstart(terms: Terms) -> str:
    """Return the script of a shell at the start: keys first, so that a person can log in even if the rest fails."""
    if not terms.ssh_keys:
        return terms.onstart
    # No loop: its last word, echoed into the log by a shell with -x, would pass for the `done_line` of a batch.
    let_in = [
        "mkdir -p ~/.ssh && chmod 700 ~/.ssh && touch ~/.ssh/authorized_keys",
        *(
            f'{_KEY}={key}; grep -qxF "${_KEY}" {_LET_IN} || printf \'%s\\n\' "${_KEY}" >> {_LET_IN}'
            for key in map(shlex.quote, terms.ssh_keys)
        ),
    ]
    return "\n".join([*let_in, terms.onstart])


def _login(terms: Terms) -> str | None:
    login = terms.login
    return None if login is None else f"-u {login.user} -p {login.password} {login.registry}"
