"""One wrong field from before the first rent on: few rents, each slot runs once it is over, and the count is right."""

from collections.abc import Sequence

import pytest

from tests.lies import rents
from tests.lies.fields import OF_RENTS, Lie, lies_of_rents
from tests.lies.sweep import HOUR
from tests.support import loop

MOST_RENTS = 6
"""Rents of one slot in an hour of a lie by which every rent differs from its order (`protections.py`)."""
MORE_RENTS = {
    ("vast", "POST /bundles min_bid: times 0.5"): 10,
    ("vast", "POST /bundles min_bid: times 0.001"): 19,
    ("vast", "POST /bundles min_bid: set 0"): 19,
}
"""Lies with more rents: a bid at a floor that is told too low is refused, and its leftover released, each time."""
GIVEN_UP = {
    (
        "vast",
        "GET /instances cur_state: set 'stopped'",
    ): "a start of half an hour is given up; no other host here has its card",
}
"""Lies after which a slot waits for another host."""
COUNTED = {
    (
        "vast",
        "POST /bundles dph_base: times 2",
    ): "an ask told too high counts for 15 minutes: Vast.ai shows a price once",
    ("vast", "POST /bundles dph_base: times 1000"): "as above",
}
"""Lies that are counted wrong, and for how long. A wrong count of an hour is $0.45 at most here."""
_LEAVES = "the release that follows counts until the machine is proven gone, a minute longer than its cloud charges"
COUNTED_FIELDS = {
    ("vast", "GET /instances actual_status"): "a new container that is said to load, or whose host is silent, is free",
    ("dstack", "* id"): "a rent under an id that no run has counts at its price until the lie is over",
    ("dstack", "* latest_job_submission"): _LEAVES,
    (
        "dstack",
        "* latest_job_submission.status",
    ): "a job that is called new is overdue after 28 minutes; its machine counts while one word denies that it ended",
    ("dstack", "* min"): _LEAVES,
    ("dstack", "* price"): "both endpoints show the same wrong price: it counts, up to the order's own limit",
    ("dstack", "* region"): _LEAVES,
    ("dstack", "* spot"): _LEAVES,
    ("dstack", "* submitted_at"): _LEAVES,
    ("mithril", "* price_cents"): "the price in the market's own bill counts, but never above our limit",
    ("dstack", "POST /api/project id"): "the rent counts under the wrong id until it is proven gone",
}
"""Fields of which some lie is counted wrong: at dstack $1.55 too much in an hour at most here and three rents of a
slot, at Mithril $5.46 for two slots under limits of $2.98/h."""
QUICK = {
    "runpod": (
        "GET /v2/pods status: null",
        "GET /v2/pods status: set 'EXITED'",
        "GET /v2/pods label: set 'junk'",
        "GET /v2/pods cost: times 2",
        "GET /v2/pods gpu.count: times 2",
        "GET /v2/pods gpu.id: set 'NVIDIA B200'",
        "GET /v2/pods dataCenterId: set 'XX-YY-1'",
        "POST /graphql costPerHr: times 1000",
        "GET /v2/catalog price.secure: times 0.5",
        "GET /v2/catalog price.secure: times 2",
    ),
    "dstack": ("* min: minus",),
    "mithril": (
        "GET /v2/spot/bids status: set 'Terminated'",
        "GET /v2/instances status: null",
        "GET /v2/instances status: set 'STATUS_ERROR'",
    ),
    "vast": (
        "GET /instances gpu_name: set 'GTX 1080'",
        "GET /instances num_gpus: times 2",
        "PUT /asks success: set False",
        "GET /instances dph_base: times 0.5",
    ),
}
"""Lies that are told in CI: most of them were believed."""
ONE_RENT = ("status", "label", "cost", "gpu.count", "costPerHr", "price.secure: times 2")
"""Lies of `QUICK` that cost no further rent."""


def judged(market: str, lie: Lie) -> list[str]:
    """Return the harms of an hour of a lie, without those that are known."""
    outcome = loop.run(lambda _: rents.rented(market, lie, HOUR))
    if isinstance(outcome, str):
        return [] if lie.field.name in {"data.myself.id", "project_id"} else [outcome]
    key = market, str(lie)
    is_known = key in COUNTED or (market, f"{lie.field.route} {lie.field.name}") in COUNTED_FIELDS
    harms = [outcome.miscounted] if outcome.miscounted and not is_known else []
    if outcome.most_rents > MORE_RENTS.get(key, MOST_RENTS):
        harms.append(f"{outcome.most_rents} rents of one slot")
    if key not in GIVEN_UP and not outcome.live == outcome.running == outcome.slots:
        harms.append(f"{outcome.live} instances and {outcome.running} running leases for {outcome.slots} slots")
    return harms


def chosen(market: str, names: Sequence[str]) -> list[Lie]:
    found = [lie for lie in lies_of_rents(market) if str(lie) in names]
    assert {str(lie) for lie in found} == set(names), "each is a lie of the list"
    return found


@pytest.mark.parametrize("market", sorted(QUICK))
def test_a_field_that_is_wrong_in_every_rent_costs_few_rents_and_no_slot(market: str) -> None:
    for lie in chosen(market, QUICK[market]):
        assert judged(market, lie) == [], str(lie)


@pytest.mark.parametrize("name", [name for name in QUICK["runpod"] if any(word in name for word in ONE_RENT)])
def test_a_field_of_runpod_that_another_answer_contradicts_costs_no_rent(name: str) -> None:
    (lie,) = chosen("runpod", [name])
    outcome = loop.run(lambda _: rents.rented("runpod", lie, HOUR))
    assert not isinstance(outcome, str)
    assert outcome.harms == []


@pytest.mark.nightly
@pytest.mark.parametrize("market", sorted(OF_RENTS))
def test_no_field_that_is_wrong_in_every_rent_does_more(market: str) -> None:
    found = {str(lie): judged(market, lie) for lie in lies_of_rents(market)}
    assert {lie: harms for lie, harms in found.items() if harms} == {}
