"""What is different at RunPod from other markets."""

from datetime import timedelta

from agent.domain.market.market_rules import MarketRules, Places, PricePaid, Settlement, Survives

RULES = MarketRules(
    places=Places.POOLS,
    price_paid=PricePaid.BID,
    auction_every=None,
    notice=timedelta(0),
    can_pause=True,
    survives=Survives.DISK,
    settlement=Settlement.PREPAID,
    starts_by_itself=False,
)
"""A pod is told five seconds before it is stopped, which is too late to act; it never starts again by itself."""
