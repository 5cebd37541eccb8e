"""The figures of this market, recorded and assumed, in the list that `gpubid simulate --about` prints."""

from agent.simulator.mithril import climate_table
from agent.simulator.recorded_figures import assumed, recorded

_PRICES = "three answers of /v2/pricing/current in the tests of a public price tracker, as the live API gave them"
_DOCS = "mithril-client 0.1.0rc3, its page on spot bids"

PRICES = recorded(
    "MITHRIL_PRICES",
    {
        "A100 1x": {"spot": 100, "reserved": 110, "minimum": 1, "free": 3, "total": 26},
        "H100 8x": {"spot": 800, "reserved": 2272, "minimum": 1, "free": 0, "total": 9},
        "B200 1x": {"spot": 3, "reserved": 345, "minimum": 1, "free": 0, "total": 32},
    },
    "cents of an instance and hour, and instances, of three pools; they begin with these figures",
    _PRICES,
)
TELLS_WIN_PRICE = recorded(
    "MITHRIL_TELLS_WIN_PRICE", (0, 3), "pools that tell the lowest allocated bid and the price to win, of all", _PRICES
)
AUCTION_SECONDS = recorded("MITHRIL_AUCTION_SECONDS", 120.0, "between two auctions", _DOCS)
NOTICE_SECONDS = recorded("MITHRIL_NOTICE_SECONDS", 300.0, "from Preempting to the shut-down", _DOCS)
DEFAULT_LIMIT_CENTS = recorded("MITHRIL_DEFAULT_LIMIT_CENTS", 3200, "limit of the vendor's client by default", _DOCS)

assumed(
    "MITHRIL_LOAD",
    climate_table.LOAD,
    "instances that rivals on Mithril want in the long run, over those there are; fitted to the median of the recorded "
    "prices over the reserved price",
)
MINIMUM_CENTS = assumed("MITHRIL_MINIMUM_CENTS", 1, "minimum price of every other pool, as in the three recorded ones")
RESERVED_CENTS = assumed(
    "MITHRIL_RESERVED_CENTS",
    {"A100": 110, "H100": 284, "H200": 320, "B200": 345},
    "reserved price of one GPU and hour in cents, from the recorded pools; that of the H200 lies between two of them",
)
BOOT_SECONDS = assumed(
    "MITHRIL_BOOT_SECONDS",
    ((1.0, 5.0), (5.0, 20.0), (20.0, 60.0), (60.0, 180.0)),
    "how long an instance is NEW, CONFIRMED, INITIALIZING and STARTING, least and most",
)
STOP_SECONDS = assumed("MITHRIL_STOP_SECONDS", (5.0, 30.0), "how long an instance is STOPPING, least and most")
RIVAL_QUANTITIES = assumed("MITHRIL_RIVAL_QUANTITIES", (1, 1, 1, 1, 2, 2, 4), "instances of a rival, each as likely")
RIVAL_HOURS = assumed("MITHRIL_RIVAL_HOURS", (5.0, 1.0), "how long a rival wants them: median and log deviation")
RIVAL_LIMITS = assumed(
    "MITHRIL_RIVAL_LIMITS",
    ((0.2, 0.06, 0.7), (0.65, 0.55, 0.5), (0.15, 1.3, 0.5)),
    "limit over the reserved price: share, median and log deviation of three kinds of rival",
)
RESERVATION_HOURS = assumed(
    "MITHRIL_RESERVATION_HOURS", (36.0, 0.8), "how long a reservation takes capacity: median and log deviation"
)
RESERVATIONS_PER_DAY = assumed("MITHRIL_RESERVATIONS_PER_DAY", 0.4, "reservations of one pool")
RESERVED_SHARE = assumed("MITHRIL_RESERVED_SHARE", (0.1, 0.5), "capacity that one reservation takes, least and most")
VOLUME = assumed("MITHRIL_VOLUME", 0.08, "$/GB/month of a volume; the price is not published")
MONTH_HOURS = assumed("MITHRIL_MONTH_HOURS", 720.0, "hours of a month of storage")
INET_DOWN = assumed("MITHRIL_INET_DOWN", 5000.0, "Mb/s down of an instance")
QUOTA_INSTANCES = assumed("MITHRIL_QUOTA_INSTANCES", 32, "instances of one type that a project may bid for")
QUOTA_STORAGE_GB = assumed("MITHRIL_QUOTA_STORAGE_GB", 50_000, "GB of volumes of a project")
