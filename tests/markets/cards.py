"""All acceptance cards, in the order of their ids."""

from tests.markets import card_listings, card_orders, card_prices, card_searches
from tests.markets.card import CARDS as REGISTERED
from tests.markets.card import Card

CARDS: tuple[Card, ...] = tuple(sorted(REGISTERED, key=lambda card: card.card_id))
CHAPTERS = (card_orders, card_prices, card_searches, card_listings)
