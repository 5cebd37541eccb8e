"""One wrong field at a time: nothing is paid for that nobody uses, and nothing let go of that somebody uses."""

from collections.abc import Iterable, Iterator, Sequence

import pytest

from tests.lies import sweep
from tests.lies.fields import FIELDS, Lie, lies
from tests.lies.sweep import HOUR, ONCE
from tests.support import loop

BELIEVED = {
    ("mithril", "limit_price", "$0.01"): "a lower limit counts at once; the order that follows sets our own again",
}
"""Lies that are believed in one cycle, and what follows."""
BELIEVED_FOR_AN_HOUR = {
    (
        "vast",
        "GET /instances actual_status",
    ): "a silent host is silent; another word counts once the load is still",
    ("vast", "POST /bundles min_bid"): "a bid at a floor that is told too low is refused, and its leftover released",
    ("mithril", "GET /v2/spot/bids limit_price"): "our own limit is ordered again, every ten or fifteen minutes",
    ("mithril", "* price_cents"): "the price in the market's own bill counts, but never above our limit",
    ("dstack", "* project_id"): "an account that is another one for two minutes ends the program (rule 5)",
    ("runpod", "POST /graphql data.myself.id"): "the same",
}
"""Fields of which some lie of an hour is believed, and what follows."""
CONTRADICTED = ("status", "cost", "disk", "mounts.persistent.size", "runtime", "uptime", "util", "ports", "costPerHr")
"""RunPod's fields that another field or the other surface contradicts for as long as they are wrong."""
HARMED_ONCE = {
    "runpod": (("status", "EXITED"), ("status", "ERROR"), ("status", "TERMINATED"), ("cost", 0)),
    "mithril": (("status", "Preempting"), ("status", "Terminated"), ("status", "Open"), ("status", "Paused")),
    "dstack": (("project_id", "junk"), ("/status", "terminated")),
    "vast": (("actual_status", "exited"), ("actual_status", "stopped"), ("cur_state", "stopped")),
}
"""Lies of which most did harm before their field was doubted."""
HARMED_WHILE_PAUSED = {
    "runpod": (("status", "junk"), ("status", "RUNNING")),
    "mithril": (("status", "Allocated"),),
    "vast": (("actual_status", "running"), ("cur_state", "running")),
}
"""Lies that counted the GPUs of a paused lease, or had it paused again and again."""
ENDED_AS = ("Open", "Allocated", "Paused", "Preempting")
"""The words by which Mithril may call a bid that has ended."""


def harms(market: str, told: Iterable[Lie], minutes: float, *, is_paused: bool = False) -> dict[str, list[str]]:
    return loop.run(lambda _: sweep.swept(market, told, minutes, is_paused=is_paused))


def of_an_hour(market: str) -> Iterator[Lie]:
    """Yield the lies about a market that must do no harm when they are told for an hour."""
    for lie in lies(market):
        if (market, f"{lie.field.route} {lie.field.name}") not in BELIEVED_FOR_AN_HOUR:
            yield lie


def chosen(market: str, pairs: Sequence[tuple[str, object]]) -> list[Lie]:
    found = [lie for lie in lies(market) if (lie.field.name, lie.change.get("value")) in pairs]
    assert {(lie.field.name, lie.change["value"]) for lie in found} == set(pairs), "each is a lie of the list"
    return found


@pytest.mark.parametrize("market", sorted(HARMED_ONCE))
def test_a_field_that_is_wrong_in_one_cycle_does_no_harm(market: str) -> None:
    assert harms(market, chosen(market, HARMED_ONCE[market]), ONCE) == {}


@pytest.mark.parametrize("market", sorted(HARMED_WHILE_PAUSED))
def test_a_field_that_is_wrong_while_a_lease_is_paused_does_no_harm(market: str) -> None:
    assert harms(market, chosen(market, HARMED_WHILE_PAUSED[market]), 10.0, is_paused=True) == {}


def test_an_end_that_a_cost_contradicts_for_an_hour_does_no_harm() -> None:
    assert harms("runpod", chosen("runpod", [("status", "EXITED")]), HOUR) == {}


def test_a_container_of_vast_that_is_called_ended_while_its_gpus_work_is_not_paused() -> None:
    """Such words did harm after two minutes. The simulated load never changes, so 15 minutes are the most here."""
    told = chosen("vast", [("actual_status", word) for word in ("exited", "stopped", "loading", "created", "")])
    assert harms("vast", told, 14.0) == {}


def test_a_price_that_dstack_tells_too_low_for_an_hour_is_not_counted() -> None:
    told = [lie for lie in lies("dstack") if lie.field.name == "price" and lie.change.get("value") in {1e-3, 0.5}]
    assert harms("dstack", told, HOUR) == {}


def test_an_ended_bid_that_is_called_open_for_an_hour_is_neither_counted_nor_released_again() -> None:
    """The orders that Mithril refused blocked all others there."""
    told = [lie for lie in chosen("mithril", [("status", word) for word in ENDED_AS]) if "bids" in lie.field.route]
    assert harms("mithril", told, HOUR) == {}


@pytest.mark.parametrize("limit", ["$31.00", "$3000.00"])
def test_a_limit_that_is_listed_too_high_for_an_hour_only_orders_ours_again(limit: str) -> None:
    """A cap of the rate counts it. A limit of $0.02 was ordered instead, every few seconds."""
    (found,) = harms("mithril", chosen("mithril", [("limit_price", limit)]), HOUR).values()
    assert len(found) <= 2 * HOUR / 15
    assert all("order our own, $2.9800/h, again" in each for each in found)


@pytest.mark.nightly
@pytest.mark.parametrize("market", sorted(FIELDS))
def test_no_field_that_is_wrong_in_one_cycle_does_harm(market: str) -> None:
    known = {(name, value) for there, name, value in BELIEVED if there == market}
    told = (lie for lie in lies(market) if (lie.field.name, lie.change.get("value")) not in known)
    assert harms(market, told, ONCE) == {}


@pytest.mark.nightly
@pytest.mark.parametrize("field", CONTRADICTED)
def test_no_contradicted_field_of_runpod_does_harm_for_an_hour(field: str) -> None:
    assert harms("runpod", (lie for lie in lies("runpod") if lie.field.name == field), HOUR) == {}


@pytest.mark.nightly
@pytest.mark.parametrize("market", ["dstack", "mithril", "vast"])
def test_no_field_that_is_wrong_for_an_hour_does_harm(market: str) -> None:
    assert harms(market, of_an_hour(market), HOUR) == {}


@pytest.mark.nightly
@pytest.mark.parametrize("minutes", [ONCE, HOUR])
@pytest.mark.parametrize("market", ["mithril", "runpod", "vast"])
def test_no_field_that_is_wrong_while_leases_are_paused_does_harm(market: str, minutes: float) -> None:
    told = of_an_hour(market) if minutes == HOUR else lies(market)
    assert harms(market, told, minutes, is_paused=True) == {}
