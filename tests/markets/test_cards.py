import pytest

from tests.markets.benches import BENCHES, EXEMPT
from tests.markets.card import Card
from tests.markets.cards import CARDS


def test_ids_stay_and_titles_differ() -> None:
    assert [card.card_id for card in CARDS] == [f"MC-{number:02}" for number in range(1, len(CARDS) + 1)]
    assert len({card.title for card in CARDS}) == len(CARDS)


def test_exemptions_are_of_cards_that_there_are() -> None:
    for market in BENCHES:
        assert set(EXEMPT[market]) < {card.card_id for card in CARDS}


PLAYED = [(market, card) for market in BENCHES for card in CARDS if card.card_id not in EXEMPT[market]]


@pytest.mark.parametrize(("market", "card"), PLAYED, ids=lambda part: getattr(part, "card_id", part))
async def test_card(market: str, card: Card) -> None:
    async with BENCHES[market](**card.stage) as bench:
        await card.play(bench)
