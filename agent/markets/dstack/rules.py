"""What is different at dstack from other markets."""

from agent.domain.market.market_rules import MarketRules, Places, PricePaid, Settlement, Survives

RULES = MarketRules(
    places=Places.POOLS,
    price_paid=PricePaid.LISTED,
    can_pause=False,
    survives=Survives.NOTHING,
    settlement=Settlement.ARREARS,
    sells_on_demand=True,
    starts_by_itself=False,
)
"""Capacity at listed prices, on demand or spot. A lost machine is gone with its disk; each cloud sends its own bill."""
