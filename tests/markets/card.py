"""Acceptance cards of a market adapter: its duties, each shown against the simulated market over real HTTP.

A card has an id that stays, a title that is a promise, and a play. cards.py gathers them, test_cards.py plays every
card on every market.
"""

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

from tests.markets.bench import Bench

Play = Callable[[Bench], Awaitable[None]]


@dataclasses.dataclass(frozen=True, slots=True)
class Card:
    """One promise. `stage` is how the bench is set up for it."""

    card_id: str
    title: str
    play: Play
    stage: dict[str, Any]


CARDS: list[Card] = []


def card(card_id: str, title: str, **stage: Any) -> Callable[[Play], Play]:
    def enter(play: Play) -> Play:
        CARDS.append(Card(card_id, title, play, stage))
        return play

    return enter
