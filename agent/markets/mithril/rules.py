"""What is different at Mithril from other markets."""

from datetime import timedelta

from agent.domain.market.market_rules import MarketRules, Places, PricePaid, Settlement, Survives

RULES = MarketRules(
    places=Places.POOLS,
    price_paid=PricePaid.SECOND_PRICE,
    auction_every=timedelta(minutes=2),
    notice=timedelta(minutes=5),
    can_pause=True,
    survives=Survives.DISK,
    settlement=Settlement.ARREARS,
    sells_on_demand=False,
    starts_by_itself=True,
    shows_container=False,
)
"""All winners of a pool pay the highest losing bid; an Open bid may win at any auction, without another call. Its
machine loads the image by our start script, so the market does not show whether the image is loaded."""
