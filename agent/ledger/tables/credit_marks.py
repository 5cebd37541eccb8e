"""Each market's last reported credit, stored as one row per market in the table of single facts."""

from datetime import datetime

from agent.domain.market.credit import Credit
from agent.domain.money import Usd

KEY = "credit/"


def text(credit: Credit) -> str:
    """Return a credit as stored: micro-dollars or nothing, then the instant."""
    micros = "" if credit.amount is None else str(credit.amount.micros)
    return f"{micros} {credit.at.isoformat()}"


def of(kept: str) -> Credit:
    """Return the credit of a stored text."""
    micros, _, at = kept.partition(" ")
    return Credit(Usd(int(micros)) if micros else None, datetime.fromisoformat(at))
