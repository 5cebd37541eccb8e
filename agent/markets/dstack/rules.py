"""What is different at dstack from other markets."""

from agent.domain.market.market_rules import MarketRules, Places, PricePaid, Settlement, Survives

RULES = MarketRules(
    places=Places.POOLS,
    price_paid=PricePaid.BID,
    can_pause=False,
    survives=Survives.NOTHING,
    settlement=Settlement.ARREARS,
    sells_on_demand=True,
    starts_by_itself=False,
)
"""Capacity on demand at listed prices. A lost machine is gone with its disk, and each cloud sends a bill of its own."""
