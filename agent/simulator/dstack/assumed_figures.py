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
    "on-demand price of one GPU and hour in cents, by cloud and by the server's name of the GPU",
    _PRICES,
)
ASSUMED_CENTS = assumed(
    "DSTACK_ASSUMED_CENTS",
    {("cloudrift", "L40S"): 88, ("cloudrift", "RTX4090"): 69},
    "the same for a cloud that the comparison does not list; the price is that of another cloud there",
)
SPOT_CENTS = recorded("DSTACK_SPOT_CENTS", {("aws", "A100"): 150}, "the same for a spot machine", _PRICES)
SPOT_SHARE = assumed(
    "DSTACK_SPOT_SHARE", 0.45, "price of a spot machine of any other cloud, divided by its on-demand price"
)
SPOT_CLOUDS = assumed("DSTACK_SPOT_CLOUDS", ("aws", "cloudrift"), "clouds that rent spot machines")
SPOT_LOSSES_PER_HOUR = assumed(
    "DSTACK_SPOT_LOSSES_PER_HOUR", 0.04, "losses of a spot machine per hour, where others rent too"
)
TELLS_NO_AVAILABILITY = recorded(
    "DSTACK_TELLS_NO_AVAILABILITY",
    ("aws", "azure", "crusoe", "gcp", "nebius"),
    "clouds whose offers have the availability `unknown` wherever the account has quota, also while none is left",
    "the code of dstack 0.22.5",
)
GIVES_UP_SECONDS = recorded(
    "DSTACK_GIVES_UP_SECONDS",
    900.0,
    "seconds until the server calls a machine terminated that it could not end",
    _SERVER,
)
EVENT_SECONDS = assumed(
    "DSTACK_EVENT_SECONDS",
    30 * 86_400.0,
    "seconds until the server deletes an event, by the source of the server",
)
CLIENT_SECONDS = assumed(
    "DSTACK_CLIENT_SECONDS",
    300.0,
    "seconds from the last use of a cloud's client until the server drops it, by the source of the server",
)
KILL_SECONDS = assumed(
    "DSTACK_KILL_SECONDS",
    10.0,
    "seconds from the interrupt of a gentle stop until the work is killed, by the source of the server's runner",
)
FAILED_SECONDS = recorded(
    "DSTACK_FAILED_SECONDS", (6.0, 18.0), "seconds until a run without capacity has failed, least and most", _SERVER
)
COUNTS = assumed("DSTACK_COUNTS", (1, 2, 4, 8), "numbers of GPUs per machine that each cloud offers")
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
    "memory of one GPU in GB, as the card is sold, by the server's name of the GPU",
)
assumed("DSTACK_CAPACITY", climate_table.CAPACITY, "free machines of each type and region of a cloud")
SUBMIT_SECONDS = assumed("DSTACK_SUBMIT_SECONDS", (2.0, 10.0), "seconds from an order to a machine, least and most")
BOOT_SECONDS = assumed("DSTACK_BOOT_SECONDS", (60.0, 240.0), "seconds from a machine to its container, least and most")
END_SECONDS = assumed(
    "DSTACK_END_SECONDS", (10.0, 90.0), "seconds until a cloud has taken a machine back, least and most"
)
INET_DOWN = assumed("DSTACK_INET_DOWN", 5000.0, "download speed of a machine in Mb/s")
