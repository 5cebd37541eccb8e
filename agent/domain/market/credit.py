"""Credit: the amount that a market's account can still spend, with the time of the market's answer."""

from dataclasses import dataclass
from datetime import datetime

from agent.domain.money import Usd


@dataclass(frozen=True, slots=True)
class Credit:
    """The credit of an account at an instant; None if the market does not report it."""

    amount: Usd | None
    at: datetime
