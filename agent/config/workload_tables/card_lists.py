"""Findings on the markets that a workload names and that sell none of its cards, by dated lists.

Invariants:
1. A card that the ledger has seen on a market is sold there, whatever the list says.
2. A market without a list draws nothing: it may sell any card.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from agent.domain.market.gpu import GpuModel


@dataclass(frozen=True, slots=True)
class CardList:
    """The cards of a market, as recorded or published on a date."""

    dated: str
    sold: frozenset[GpuModel] = frozenset()
    """Every model that it sells; empty: not known."""
    shown_as: Mapping[GpuModel, GpuModel] = field(default_factory=dict)
    """Models that it shows by another name, by our name of them."""


class UnsoldCards(NamedTuple):
    """Why none of a workload's cards matches on a market, and the fix."""

    sentence: str
    fix: str


def unsold(
    market: str, key: str, models: Collection[GpuModel], card_list: CardList, seen: Collection[tuple[str, GpuModel]]
) -> Iterator[UnsoldCards]:
    """Yield the reason why none of `models` matches on the market that `key` names, if that is so by its list."""
    if not models or any((market, model) in seen for model in models):
        return
    others = sorted({card_list.shown_as[model] for model in models if model in card_list.shown_as} - {*models})
    if others and all(model in card_list.shown_as for model in models):
        sentence = f"{market} shows these cards as {_quoted(others)}: nothing in gpu matches there"
        yield UnsoldCards(sentence, f"add {_quoted(others)} to gpu, or remove {market} from {key}")
    elif card_list.sold and not card_list.sold & {*models}:
        sentence = f"{market} sells none of {_quoted(sorted(models))}, by its list of {card_list.dated}"
        yield UnsoldCards(sentence, f"name a card that it sells in gpu, or remove {market} from {key}")


def _quoted(models: Collection[GpuModel]) -> str:
    return ", ".join(json.dumps(model) for model in models)
