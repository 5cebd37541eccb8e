"""What is different at dstack from other markets."""

from datetime import timedelta

from agent.domain.market.market_rules import MarketRules, Places, PricePaid, Settlement, Survives

LONGEST_GAP = timedelta(minutes=2)
"""After a longer time without a look, nobody knows when the end of a machine began."""

UNPROVEN_ENDS = ("crusoe", "jarvislabs")
"""Clouds of which the server calls a machine terminated after any error of the cloud's API, without ending it."""

RULES = MarketRules(
    places=Places.POOLS,
    price_paid=PricePaid.LISTED,
    can_pause=False,
    survives=Survives.NOTHING,
    settlement=Settlement.ARREARS,
    sells_on_demand=True,
    starts_by_itself=False,
    proves_ends_within=LONGEST_GAP,
    keeps_price=True,
    has_bill=False,
)
"""Capacity at listed prices, on demand or spot. The server writes a price down once, when it gets the machine.

A lost machine is gone with its disk; each cloud sends its own bill."""
