"""The assumed figures of this market, in the list that `gpubid simulate --about` prints."""

from agent.simulator.recorded_figures import assumed, recorded

_DOCS = "runpod/docs pods/pricing.mdx @eb33022a"
_BILLING = "runpod/docs references/billing-information.mdx"

SPOT_OVER_PRICE = recorded(
    "RUNPOD_SPOT_OVER_PRICE",
    {"secure": 0.54, "community": 0.53},
    "median floor over list price of 23 and 30 types",
    "gpuTypes answers of 2025-06-15 to 21; prices and floors are in runpod/models.py",
)
CONTAINER_DISK = recorded("RUNPOD_CONTAINER_DISK", 0.10, "$/GB/month of container disk, while it runs", _DOCS)
VOLUME_RUNNING = recorded("RUNPOD_VOLUME_RUNNING", 0.10, "$/GB/month of a running pod's volume", _DOCS)
VOLUME_STOPPED = recorded("RUNPOD_VOLUME_STOPPED", 0.20, "$/GB/month of a stopped pod's volume", _DOCS)
KILL_SECONDS = recorded("RUNPOD_KILL_SECONDS", 5.0, "between SIGTERM and SIGKILL of a pod that is outbid", _DOCS)
TICK_SECONDS = recorded("RUNPOD_TICK_SECONDS", 300.0, "between two checks of the balance", _BILLING)
DEPLOY_HOURS = recorded("RUNPOD_DEPLOY_HOURS", 1.0, "hours of a pod's cost that the balance must hold", _BILLING)
LAST_MINUTES = recorded(
    "RUNPOD_LAST_MINUTES", 10.0, "minutes of runtime left at which all pods are stopped (low_balance = stop)", _DOCS
)
SPEND_LIMIT = recorded("RUNPOD_SPEND_LIMIT", 80.0, "$/h that an account may spend by default", _BILLING)

NETWORK_VOLUME = recorded(
    "RUNPOD_NETWORK_VOLUME", (0.07, 0.05), "$/GB/month of a network volume, and of what is above a terabyte", _BILLING
)
NETWORK_VOLUME_STEP_GB = assumed("RUNPOD_NETWORK_VOLUME_STEP_GB", 1000, "gigabytes of that terabyte")
MONTH_HOURS = assumed("RUNPOD_MONTH_HOURS", 720.0, "hours of a month of storage")
HOSTS_PER_TYPE = assumed("RUNPOD_HOSTS_PER_TYPE", (1, 5), "hosts of one type and cloud at scale 1")
GUEST_GPUS = assumed("RUNPOD_GUEST_GPUS", (1, 1, 1, 1, 1, 1, 2, 2, 4, 8), "GPUs that others want, each as likely")
BID_OVER_FLOOR = assumed("RUNPOD_BID_OVER_FLOOR", (1.1, 0.2), "others' bid over the floor: median and log deviation")
RELIABILITY = assumed("RUNPOD_RELIABILITY", {"SECURE": 0.9995, "COMMUNITY": 0.99}, "share of time hosts answer")
STOCK_LEVELS = assumed("RUNPOD_STOCK_LEVELS", (3, 10), "pods that still fit: at most this many is low, is medium")
IMAGE_ERROR_SECONDS = assumed(
    "RUNPOD_IMAGE_ERROR_SECONDS", (6.0, 240.0), "from a failed pull to the pod's exit; field reports say 6 s to minutes"
)
STALE_SECONDS = assumed("RUNPOD_STALE_SECONDS", 60.0, "how long an exited pod's last report is shown")
RESTART_SECONDS = assumed("RUNPOD_RESTART_SECONDS", (2.0, 10.0), "until the host restarts a container that ended")
INET_DOWN = assumed("RUNPOD_INET_DOWN", (400.0, 6000.0), "Mb/s down of hosts, least and most")
