"""One wrong field in the answer to a write, or while a lease is outbid: the deed ends as with the truth."""

import functools
from collections.abc import Sequence

import pytest

from tests.lies import deeds
from tests.lies.fields import FIELDS, OF_WRITES, Lie, lies_of_fields
from tests.support import loop

DEEDS = [(market, deed) for market, of_market in OF_WRITES.items() for deed in of_market]
BELIEVED = {
    ("vast", "outbid", "GET /instances actual_status"): "as in the hour of a fleet that runs (`test_sweep.py`)",
    (
        "vast",
        "outbid",
        "GET /instances min_bid",
    ): "a calm bid is lowered to a floor that is told too low, outbid there, and raised again",
    (
        "vast",
        "outbid",
        "POST /bundles min_bid",
    ): "moves to a floor that is told too low are refused: four in the half hour",
}
"""Fields of which some lie is believed during a deed, and what follows."""
_MOVES = "the slots move to a pool with another price, as if their bids went on waiting there"
BELIEVED_WORDS = {
    ("runpod", "outbid", "GET /v2/pods status: set 'TERMINATED'"): "another is rented; the old one is an orphan later",
    ("mithril", "outbid", "GET /v2/spot/bids status: set 'Allocated'"): "it counts as loading, at its pool's price",
    ("mithril", "outbid", "GET /v2/spot/bids status: set 'Open'"): _MOVES,
    ("mithril", "outbid", "GET /v2/spot/bids status: set 'Paused'"): _MOVES,
    ("mithril", "outbid", "GET /v2/spot/bids status: set 'Preempting'"): _MOVES,
}
"""Single lies that are believed during a deed, and what follows."""
QUICK = (
    ("vast", "pause", "PUT /instances success: set False"),
    ("vast", "release", "DELETE /instances success: set False"),
    ("vast", "queue", "PUT /instances error: set 'no_such_instance'"),
    ("vast", "outbid", "PUT /instances/bid_price success: set False"),
    ("vast", "outbid", "GET /instances actual_status: set 'junk'"),
    ("vast", "outbid", "GET /instances cur_state: null"),
    ("runpod", "outbid", "GET /v2/pods status: set 'junk'"),
    ("runpod", "pause", "POST /v2/pods status: set 'TERMINATED'"),
    ("mithril", "pause", "PATCH /v2/spot/bids status: set 'Terminated'"),
)
"""Lies that are told in CI."""


@functools.cache
def truly(market: str, deed: str) -> deeds.Done | str:
    return loop.run(lambda _: deeds.done(market, deed, None))


def judged(market: str, deed: str, lie: Lie) -> list[str]:
    return deeds.harms(loop.run(lambda _: deeds.done(market, deed, lie)), truly(market, deed))


def every_lie(market: str, deed: str) -> Sequence[Lie]:
    """Return the lies that are told during a deed; while a lease of Vast.ai is outbid, those of every answer too."""
    return list(
        lies_of_fields([*OF_WRITES[market][deed], *(FIELDS[market] if (market, deed) == ("vast", "outbid") else ())])
    )


def lies_of(market: str, deed: str) -> Sequence[Lie]:
    """Return the lies that must not be believed during a deed."""
    return [
        lie
        for lie in every_lie(market, deed)
        if (market, deed, f"{lie.field.route} {lie.field.name}") not in BELIEVED
        and (market, deed, str(lie)) not in BELIEVED_WORDS
    ]


@pytest.mark.parametrize(("market", "deed", "name"), QUICK)
def test_a_wrong_answer_to_a_write_changes_no_deed(market: str, deed: str, name: str) -> None:
    (lie,) = (lie for lie in every_lie(market, deed) if str(lie) == name)
    assert judged(market, deed, lie) == []


@pytest.mark.nightly
@pytest.mark.parametrize(("market", "deed"), DEEDS)
def test_no_wrong_answer_to_a_write_changes_a_deed(market: str, deed: str) -> None:
    found = {str(lie): judged(market, deed, lie) for lie in lies_of(market, deed)}
    assert {lie: harms for lie, harms in found.items() if harms} == {}
