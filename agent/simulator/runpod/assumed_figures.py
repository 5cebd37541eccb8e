"""The assumed figures of this market, in the list that `gpubid simulate --about` prints."""

from agent.simulator.recorded_figures import assumed, recorded

_DOCS = "runpod/docs pods/pricing.mdx @eb33022a"
_BILLING = "runpod/docs references/billing-information.mdx"

SPOT_OVER_PRICE = recorded(
    "RUNPOD_SPOT_OVER_PRICE",
    {"secure": 0.54, "community": 0.53},
    "median of floor divided by list price, of 23 secure and 30 community types",
    "gpuTypes answers of 2025-06-15 to 21; prices and floors are in runpod/models.py",
)
CONTAINER_DISK = recorded("RUNPOD_CONTAINER_DISK", 0.10, "$/GB/month of container disk, while the pod runs", _DOCS)
VOLUME_RUNNING = recorded("RUNPOD_VOLUME_RUNNING", 0.10, "$/GB/month of a running pod's volume", _DOCS)
VOLUME_STOPPED = recorded("RUNPOD_VOLUME_STOPPED", 0.20, "$/GB/month of a stopped pod's volume", _DOCS)
KILL_SECONDS = recorded("RUNPOD_KILL_SECONDS", 5.0, "seconds from SIGTERM to SIGKILL of a pod that is outbid", _DOCS)
TICK_SECONDS = recorded("RUNPOD_TICK_SECONDS", 300.0, "seconds between two checks of the balance", _BILLING)
DEPLOY_HOURS = recorded(
    "RUNPOD_DEPLOY_HOURS", 1.0, "hours of cost that the balance must cover before a pod starts", _BILLING
)
LAST_MINUTES = recorded(
    "RUNPOD_LAST_MINUTES",
    10.0,
    "all pods are stopped when the balance lasts for fewer minutes (low_balance = stop)",
    _DOCS,
)
SPEND_LIMIT = recorded("RUNPOD_SPEND_LIMIT", 80.0, "default spend limit of an account in $/h", _BILLING)

NETWORK_VOLUME = recorded(
    "RUNPOD_NETWORK_VOLUME",
    (0.07, 0.05),
    "$/GB/month of the first terabyte of a network volume, and of the rest",
    _BILLING,
)
NETWORK_VOLUME_STEP_GB = assumed("RUNPOD_NETWORK_VOLUME_STEP_GB", 1000, "GB in that terabyte")
MONTH_HOURS = assumed("RUNPOD_MONTH_HOURS", 720.0, "hours of a month of storage")
HOSTS_PER_TYPE = assumed("RUNPOD_HOSTS_PER_TYPE", (1, 5), "hosts of one type and cloud at scale 1, least and most")
GUEST_GPUS = assumed(
    "RUNPOD_GUEST_GPUS",
    (1, 1, 1, 1, 1, 1, 2, 2, 4, 8),
    "GPUs that another renter wants; each of these numbers is equally likely",
)
BID_OVER_FLOOR = assumed(
    "RUNPOD_BID_OVER_FLOOR", (1.1, 0.2), "bid of another renter, divided by the floor: median and log deviation"
)
RELIABILITY = assumed(
    "RUNPOD_RELIABILITY", {"SECURE": 0.9995, "COMMUNITY": 0.99}, "share of time in which hosts answer"
)
STOCK_LEVELS = assumed("RUNPOD_STOCK_LEVELS", (3, 10), "stock is low, or medium, if at most this many more pods fit")
IMAGE_ERROR_SECONDS = assumed(
    "RUNPOD_IMAGE_ERROR_SECONDS",
    (6.0, 240.0),
    "seconds from a failed pull to the pod's exit; users report 6 s to minutes",
)
STALE_SECONDS = assumed("RUNPOD_STALE_SECONDS", 60.0, "seconds for which the last report of an exited pod is shown")
RESTART_SECONDS = assumed(
    "RUNPOD_RESTART_SECONDS", (2.0, 10.0), "seconds until the host restarts a container that ended, least and most"
)
INET_DOWN = assumed("RUNPOD_INET_DOWN", (400.0, 6000.0), "download speed of hosts in Mb/s, least and most")
