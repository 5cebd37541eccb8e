"""The figures of this market, recorded and assumed, in the list that `gpubid simulate --about` prints."""

from agent.simulator.mithril import climate_table
from agent.simulator.recorded_figures import assumed, recorded

_PRICES = "three answers of the live API to /v2/pricing/current, in the tests of a public price tracker"
_DOCS = "mithril-client 0.1.0rc3, its page on spot bids"

PRICES = recorded(
    "MITHRIL_PRICES",
    {
        "A100 1x": {"spot": 100, "reserved": 110, "minimum": 1, "free": 3, "total": 26},
        "H100 8x": {"spot": 800, "reserved": 2272, "minimum": 1, "free": 0, "total": 9},
        "B200 1x": {"spot": 3, "reserved": 345, "minimum": 1, "free": 0, "total": 32},
    },
    "prices in cents per instance and hour, and numbers of instances, of three pools; these pools begin with them",
    _PRICES,
)
TELLS_WIN_PRICE = recorded(
    "MITHRIL_TELLS_WIN_PRICE",
    (0, 3),
    "pools that show the lowest allocated bid and the price to win, and all recorded pools",
    _PRICES,
)
AUCTION_SECONDS = recorded("MITHRIL_AUCTION_SECONDS", 120.0, "seconds between two auctions", _DOCS)
NOTICE_SECONDS = recorded("MITHRIL_NOTICE_SECONDS", 300.0, "seconds from Preempting to the shut-down", _DOCS)
DEFAULT_LIMIT_CENTS = recorded(
    "MITHRIL_DEFAULT_LIMIT_CENTS", 3200, "default limit in the vendor's client, in cents per hour", _DOCS
)

assumed(
    "MITHRIL_LOAD",
    climate_table.LOAD,
    "instances that rivals on Mithril want on average, divided by the existing instances; fitted to the median of the "
    "recorded price divided by the reserved price",
)
MINIMUM_CENTS = assumed(
    "MITHRIL_MINIMUM_CENTS", 1, "minimum price of every other pool in cents, as in the three recorded pools"
)
RESERVED_CENTS = assumed(
    "MITHRIL_RESERVED_CENTS",
    {"A100": 110, "H100": 284, "H200": 320, "B200": 345},
    "reserved price of one GPU and hour in cents, from the recorded pools; that of the H200 is between two of them",
)
BOOT_SECONDS = assumed(
    "MITHRIL_BOOT_SECONDS",
    ((1.0, 5.0), (5.0, 20.0), (20.0, 60.0), (60.0, 180.0)),
    "seconds in which an instance is NEW, CONFIRMED, INITIALIZING and STARTING: least and most of each",
)
STOP_SECONDS = assumed("MITHRIL_STOP_SECONDS", (5.0, 30.0), "seconds in which an instance is STOPPING, least and most")
RIVAL_QUANTITIES = assumed(
    "MITHRIL_RIVAL_QUANTITIES",
    (1, 1, 1, 1, 2, 2, 4),
    "instances that a rival wants; each of these numbers is equally likely",
)
RIVAL_HOURS = assumed("MITHRIL_RIVAL_HOURS", (5.0, 1.0), "hours for which a rival wants them: median and log deviation")
RIVAL_LIMITS = assumed(
    "MITHRIL_RIVAL_LIMITS",
    ((0.2, 0.06, 0.7), (0.65, 0.55, 0.5), (0.15, 1.3, 0.5)),
    "limit of three kinds of rivals, divided by the reserved price: share of rivals, median, log deviation",
)
RESERVATION_HOURS = assumed(
    "MITHRIL_RESERVATION_HOURS", (36.0, 0.8), "hours for which a reservation takes capacity: median and log deviation"
)
RESERVATIONS_PER_DAY = assumed("MITHRIL_RESERVATIONS_PER_DAY", 0.4, "reservations of one pool per day")
RESERVED_SHARE = assumed(
    "MITHRIL_RESERVED_SHARE", (0.1, 0.5), "share of the capacity that one reservation takes, least and most"
)
VOLUME = assumed("MITHRIL_VOLUME", 0.08, "price of a volume in $/GB/month; the real one is not published")
MONTH_HOURS = assumed("MITHRIL_MONTH_HOURS", 720.0, "hours of a month of storage")
INET_DOWN = assumed("MITHRIL_INET_DOWN", 5000.0, "download speed of an instance in Mb/s")
QUOTA_INSTANCES = assumed("MITHRIL_QUOTA_INSTANCES", 32, "most instances of one type that a project may bid for")
QUOTA_STORAGE_GB = assumed("MITHRIL_QUOTA_STORAGE_GB", 50_000, "most GB of volumes of a project")
