"""RunPod's record: what the rest of the program knows about this market."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from agent.domain.market.gpu import GpuModel
from agent.markets.market_record import FirstAnswers, InstanceKey, KeyScope, MarketOptions, MarketRecord, StopRequest
from agent.markets.runpod.rules import RULES

if TYPE_CHECKING:
    from agent.clock import Clock
    from agent.markets.http_exchange import Exchange
    from agent.markets.runpod.market import RunPodMarket
    from agent.markets.transport import Key

NEEDED = ("pods", "billing", "the catalogue", "GraphQL")
"""The scopes of our calls: pods and GraphQL with write access. A workload's `network_volume` needs another one."""
ON_DEMAND = FirstAnswers("0.80", "20", "ondemand")
"""RunPod sells nothing at a bid since September 2026. An RTX 4090 cost $0.69 on demand in the recorded prices, without
its disk."""


def connect(
    url: str,
    key: "Key",
    clock: "Clock",
    jitter: Callable[[], float],
    /,
    *,
    options: MarketOptions | None = None,
    through: "Exchange | None" = None,
) -> "RunPodMarket":
    """Return the market at `url`; it has no keys of its own."""
    from agent.markets.runpod import market

    del options
    return market.connect(url, key, clock, jitter, through=through)


async def is_wide(url: str, key: "Key", clock: "Clock", jitter: Callable[[], float], /) -> bool | None:
    """Return whether a key may do more than we need; None: not known. Raises: Throttled, Unavailable."""
    from agent.markets.runpod import scope

    return await scope.is_wide(url, key, clock, jitter)


def gpu_model(name: str) -> GpuModel:
    """Return our name of a GPU model from the vendor's short or long one."""
    from agent.markets.runpod import names

    return names.model(name)


_ACTION = "/v2/pods/{instance}/action"
INSTANCE_KEY = InstanceKey(
    id_variable="RUNPOD_POD_ID",
    key_variable="RUNPOD_API_KEY",
    stop=StopRequest("POST", _ACTION, {"action": "stop"}),
    end=StopRequest("POST", _ACTION, {"action": "terminate"}),
)
"""Whether a pod's own key may ask for this is not known: it was never tried."""

RECORD = MarketRecord(
    name="runpod",
    title="RunPod",
    url="https://api.runpod.io",
    url_means="Address of the market's REST v2 (under /v2) and GraphQL (/graphql).",
    documentation="https://docs.runpod.io",
    rules=RULES,
    connect=connect,
    key_scope=KeyScope(is_wide, NEEDED),
    first_answers=ON_DEMAND,
    gpu_model=gpu_model,
    restarts_ended=True,
    shows_datacenter=True,
    mounts_volumes=True,
    instance_key=INSTANCE_KEY,
    keys_at_start=(
        "given to the container at its start as PUBLIC_KEY; RunPod's API registers keys with the account alone and "
        "updates no running instance"
    ),
)
