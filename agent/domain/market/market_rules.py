"""What differs between markets, as decisions need to know it; no decision reads the name of a vendor.

Each adapter says its market's rules. They are facts about the product and do not change while the program runs.
"""

from datetime import timedelta
from enum import Enum

import msgspec


class Places(Enum):
    """What an offer stands for."""

    HOSTS = "hosts"
    """One host: its record and its owner can be judged, and a second rent there shares its fate."""
    POOLS = "pools"
    """A pool of like hosts; the market picks one of them."""


class PricePaid(Enum):
    """What the renter of interruptible capacity pays."""

    BID = "bid"
    """The bid itself."""
    LISTED = "listed"
    """The listed price: there are no bids, and what the renter names is the most that it may be."""
    SECOND_PRICE = "second_price"
    """The same price for all winners, at most the bid; a higher bid alone does not cost more."""


class Survives(Enum):
    """What an interruption leaves to the renter."""

    DISK = "disk"
    """The disk, which is still paid for."""
    NOTHING = "nothing"
    """Nothing: neither the disk nor a place in a queue."""


class Settlement(Enum):
    """How the account pays."""

    PREPAID = "prepaid"
    """From credit that was paid in before: the market stops what it does not cover."""
    ARREARS = "arrears"
    """By a later bill: the market stops nothing, so only our budgets do."""


class MarketRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one market. The defaults are a market of single hosts where each renter pays its own bid."""

    places: Places = Places.HOSTS
    """Whether an offer is one host or a pool of like hosts."""
    price_paid: PricePaid = PricePaid.BID
    """What the winner of a bid pays."""
    auction_every: timedelta | None = None
    """The time between two auctions; None if a bid is judged at any moment."""
    notice: timedelta = timedelta(0)
    """How long before an interruption the market says so; zero if it does not, or too late to use it."""
    can_pause: bool = True
    """Whether the renter can stop an instance and keep its disk."""
    survives: Survives = Survives.DISK
    """What an interruption leaves."""
    settlement: Settlement = Settlement.PREPAID
    """Whether the account pays before or after."""
    sells_on_demand: bool = True
    """Whether it may sell capacity on demand."""
    starts_by_itself: bool = True
    """Whether the market may start an interrupted or waiting instance without another call."""
    proves_ends_within: timedelta | None = None
    """The longest time between two looks that still prove the end of an instance; None if the market's word does."""
    keeps_price: bool = False
    """Whether an instance costs what it cost at the rent for as long as it exists."""
    has_bill: bool = True
    """Whether it shows what it charged, so that a ledger that lacks spend can count it."""
    shows_container: bool = True
    """Whether a running instance is a running container; else a machine that may still load the workload's image."""

    @property
    def has_limits(self) -> bool:
        """Whether the price paid is not the bid, so that a bid is a limit."""
        return self.price_paid is PricePaid.SECOND_PRICE

    @property
    def is_listed(self) -> bool:
        """Whether the listed price is paid, so that there are no bids."""
        return self.price_paid is PricePaid.LISTED


ASSUMED = MarketRules()
"""The rules of a market that has not told its own."""
