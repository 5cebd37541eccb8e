"""The pauses and releases that a daemon sent without its ledger (rule 13), as its log has them."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from tests.failovers.history import Ordered

UNJOURNALED, UNSENT = "intent.unjournaled", "intent.unsent"


def orders(lines: Iterable[str]) -> list[Ordered]:
    """Return what was ordered. A release that the market did not take is followed by one pause.

    A last line of a daemon that ended may be plain text.
    """
    logged = [json.loads(line) for line in lines if line.startswith("{")]
    return [
        Ordered("", kind, "", each["lease"].partition("-")[2], datetime.fromisoformat(each["at"]).timestamp())
        for place, each in enumerate(logged)
        if each["event"] == UNJOURNALED
        for kind in _kinds(each, logged[place + 1 :])
    ]


def _kinds(order: dict[str, Any], later: list[dict[str, Any]]) -> list[str]:
    """Return the kinds of the requests of an order, by the lines after it until the next order of the lease."""
    if order["kind"] != "release":
        return [str(order["kind"])]
    of_it = (each for each in later if each["event"] in {UNJOURNALED, UNSENT} and each["lease"] == order["lease"])
    follows = next(of_it, None)
    return ["release", "pause"] if follows is not None and follows["event"] == UNSENT else ["release"]
