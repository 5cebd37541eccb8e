"""What is different at Vast.ai from other markets."""

from datetime import timedelta

from agent.domain.market.market_rules import MarketRules, Places, PricePaid, Settlement, Survives

RULES = MarketRules(
    places=Places.HOSTS,
    price_paid=PricePaid.BID,
    auction_every=None,
    notice=timedelta(0),
    can_pause=True,
    survives=Survives.DISK,
    settlement=Settlement.PREPAID,
    starts_by_itself=True,
)
"""An instance that was outbid starts again when its bid wins, and so does one whose start was queued."""
MOST_SCRIPT = 4048
"""The most characters of `onstart`, by the vendor's OpenAPI file."""
