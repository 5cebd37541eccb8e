import pytest

from tests.markets.bench import BENCHES
from tests.markets.card import Card
from tests.markets.cards import CARDS


def test_ids_stay_and_titles_differ() -> None:
    assert [card.card_id for card in CARDS] == [f"MC-{number:02}" for number in range(1, len(CARDS) + 1)]
    assert len({card.title for card in CARDS}) == len(CARDS)


@pytest.mark.parametrize("market", BENCHES)
@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.card_id)
async def test_card(market: str, card: Card) -> None:
    async with BENCHES[market](**card.stage) as bench:
        await card.play(bench)
