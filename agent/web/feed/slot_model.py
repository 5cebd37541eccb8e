"""The slots of the read model, with their prices, decisions and measurements.

The descriptions of the fields are part of `/api/v1/openapi.json`.
"""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

Instant = Annotated[datetime, Meta(tz=True)]


class Price(Struct, frozen=True):
    """The prices of a lease from `at` on, until the next change."""

    at: Annotated[Instant, Meta(description="The instant of the change.")]
    bid: Annotated[float | None, Meta(description="Our bid, in dollars per hour. Null: on demand, or not known yet.")]
    floor: Annotated[
        float | None,
        Meta(description="The floor of as many GPUs on that host, in dollars per hour. Null: not seen yet."),
    ]
    ask: Annotated[
        float | None,
        Meta(description="The on-demand price of as many GPUs there, in dollars per hour. Null: not seen yet."),
    ]


class Decision(Struct, frozen=True):
    """A decision about a slot, with its reason."""

    at: Annotated[Instant, Meta(description="The instant of the cycle that decided.")]
    kind: Annotated[str, Meta(description="The order, such as `rent` or `release`; `hold` if nothing is ordered.")]
    code: Annotated[str, Meta(description="The code of the reason, for programs.")]
    sentence: Annotated[str, Meta(description="The reason, for people.")]
    limit: Annotated[
        str | None, Meta(description="The limit that forbade the strategy's proposal. Null: no limit forbade it.")
    ]


class Measured(Struct, frozen=True):
    """The last measurements of a lease's guard. The host could falsify these figures."""

    told_at: Annotated[Instant, Meta(description="The instant at which the daemon read the last change.")]
    progress: Annotated[
        float | None, Meta(description="The progress of the work, in its own unit. Null: the work writes none.")
    ]
    kept_at: Annotated[
        Instant | None,
        Meta(
            description="The instant of the last checkpoint in the bucket, or of the start of the present running "
            "stretch if it has none. Null: unknown."
        ),
    ]
    checkpoint_gb: Annotated[
        float | None, Meta(description="The size of that checkpoint in GB (10⁹ bytes). Null: not measured.")
    ]
    took_seconds: Annotated[
        float | None, Meta(description="The seconds in which the work wrote that checkpoint. Null: not measured.")
    ]
    upload_seconds: Annotated[float | None, Meta(description="The seconds of its upload. Null: not measured.")]
    restore_seconds: Annotated[
        float | None, Meta(description="The seconds of the last restore from the bucket. Null: not measured.")
    ]


class Slot(Struct, frozen=True):
    """A slot with its last lease."""

    slot: Annotated[str, Meta(description="The name of the slot, such as `train/0`.")]
    state: Annotated[str, Meta(description="The state of its lease, such as `running`; `empty` without a lease.")]
    is_configured: Annotated[
        bool, Meta(description="False for a lease without a configured slot. Such a lease bills too.")
    ]
    lease: Annotated[str | None, Meta(description="The id of its lease. Null: no lease.")]
    market: Annotated[str | None, Meta(description="The market of the lease. Null: no lease.")]
    host: Annotated[str | None, Meta(description="The host of the lease, by the market's id. Null: no lease.")]
    gpu: Annotated[str | None, Meta(description="The model of its GPUs. Null: no lease.")]
    gpus: Annotated[int | None, Meta(description="The number of its GPUs. Null: no lease.")]
    tenure: Annotated[str | None, Meta(description="`on_demand`, `interruptible` or `reserved`. Null: no lease.")]
    since: Annotated[Instant | None, Meta(description="The instant at which `state` began. Null: no lease.")]
    dollars_per_hour: Annotated[
        float, Meta(description="The present rate of all leases of the slot, in dollars per hour.")
    ]
    bid: Annotated[
        float | None,
        Meta(description="Our bid, in dollars per hour. Null: the lease is not interruptible, or no lease."),
    ]
    floor: Annotated[
        float | None, Meta(description="The last floor seen, in dollars per hour. Null: none was seen, or no lease.")
    ]
    ask: Annotated[
        float | None,
        Meta(description="The last on-demand price seen, in dollars per hour. Null: none was seen, or no lease."),
    ]
    prices: Annotated[list[Price], Meta(description="The price changes of the last day, oldest first.")]
    useful_share: Annotated[
        float | None,
        Meta(
            description="The useful part of today's paid time of its present leases, as a share. "
            "Null: no paid time today."
        ),
    ]
    decision: Annotated[Decision | None, Meta(description="The last decision about the slot. Null: none yet.")]
    why: Annotated[
        str, Meta(description="Why the slot does not run, or why its work is of no use. Empty if all is well.")
    ]
    measured: Annotated[
        Measured | None, Meta(description="The guard's measurements. Null: no guard that reports to a bucket.")
    ]
