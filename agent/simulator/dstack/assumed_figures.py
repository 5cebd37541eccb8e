"""The figures of this market, recorded and assumed, in the list that `gpubid simulate --about` prints."""

from agent.simulator.dstack import climate_table
from agent.simulator.recorded_figures import assumed, recorded

_PRICES = "published comparison of cloud GPU prices, April 2025"
_SERVER = "dstack 0.22.5, run on loopback on 2026-11-28"

CENTS = recorded(
    "DSTACK_CENTS",
    {
        ("aws", "A100"): 344,
        ("aws", "L4"): 100,
        ("lambda", "H100"): 249,
        ("lambda", "A100"): 179,
        ("lambda", "A6000"): 80,
        ("vultr", "A100"): 260,
    },
    "cents of one GPU and hour on demand, by cloud and the server's name of the GPU",
    _PRICES,
)
ASSUMED_CENTS = assumed(
    "DSTACK_ASSUMED_CENTS",
    {("cloudrift", "L40S"): 88, ("cloudrift", "RTX4090"): 69},
    "the same for a cloud that the comparison does not list: as another cloud in it",
)
SPOT_CENTS = recorded(
    "DSTACK_SPOT_CENTS", {("aws", "A100"): 150}, "cents of one GPU and hour of a spot machine, as above", _PRICES
)
SPOT_SHARE = assumed("DSTACK_SPOT_SHARE", 0.45, "price of another cloud's spot machine over that on demand")
SPOT_CLOUDS = assumed("DSTACK_SPOT_CLOUDS", ("aws", "cloudrift"), "clouds that rent spot machines")
SPOT_LOSSES_PER_HOUR = assumed("DSTACK_SPOT_LOSSES_PER_HOUR", 0.04, "losses of a spot machine where others rent too")
GIVES_UP_SECONDS = recorded(
    "DSTACK_GIVES_UP_SECONDS", 900.0, "after which the server calls a machine terminated that it could not end", _SERVER
)
FAILED_SECONDS = recorded(
    "DSTACK_FAILED_SECONDS", (6.0, 18.0), "until a run without capacity has failed, least and most", _SERVER
)
COUNTS = assumed("DSTACK_COUNTS", (1, 2, 4, 8), "GPUs of the types of machines that each cloud has")
REGIONS = assumed(
    "DSTACK_REGIONS",
    {
        "aws": ("us-east-1", "eu-west-1"),
        "lambda": ("us-west-1",),
        "cloudrift": ("us-east-nc-nr-1",),
        "vultr": ("ewr",),
    },
    "regions of each cloud",
)
MEMORY_GB = assumed(
    "DSTACK_MEMORY_GB",
    {"A100": 80, "H100": 80, "L4": 24, "A6000": 48, "L40S": 48, "RTX4090": 24},
    "memory of one GPU by the server's name of it: as the cards are sold",
)
assumed("DSTACK_CAPACITY", climate_table.CAPACITY, "machines of each type and region that a cloud has free")
SUBMIT_SECONDS = assumed("DSTACK_SUBMIT_SECONDS", (2.0, 10.0), "from an order to a machine, least and most")
BOOT_SECONDS = assumed("DSTACK_BOOT_SECONDS", (60.0, 240.0), "from a machine to its container, least and most")
END_SECONDS = assumed("DSTACK_END_SECONDS", (10.0, 90.0), "until a cloud has taken a machine back, least and most")
INET_DOWN = assumed("DSTACK_INET_DOWN", 5000.0, "Mb/s down of a machine")
