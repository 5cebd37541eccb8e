"""Credit: what a market's account can still spend, as the market told it, and when."""

from dataclasses import dataclass
from datetime import datetime

from agent.domain.money import Usd


@dataclass(frozen=True, slots=True)
class Credit:
    """What an account could spend at an instant; None where the market does not tell."""

    amount: Usd | None
    at: datetime
