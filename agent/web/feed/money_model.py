"""The money of the read model: spend, caps, credit, workloads and savings.

The descriptions of the fields are part of `/api/v1/openapi.json`.
"""

from typing import Annotated

from msgspec import Meta, Struct

from agent.web.feed.slot_model import Instant


class Cap(Struct, frozen=True):
    """A cap with the committed spend that counts against it."""

    scope: Annotated[str, Meta(description="The kind of its scope: `account`, `market` or `workload`.")]
    name: Annotated[str, Meta(description="The name of the market or workload. Empty for the whole account.")]
    window: Annotated[str, Meta(description="`per_hour`, `per_day`, `per_month` or `total`.")]
    used_dollars: Annotated[
        float,
        Meta(description="The committed spend in the window. For `per_hour`, the committed rate in dollars per hour."),
    ]
    cap_dollars: Annotated[float, Meta(description="The cap. For `per_hour`, in dollars per hour.")]


class Credit(Struct, frozen=True):
    """The credit of a market's account, and how long it lasts at the present rate."""

    market: Annotated[str, Meta(description="The name of the market.")]
    dollars: Annotated[float | None, Meta(description="The credit. Null: unknown, or the market has none.")]
    lasts_hours: Annotated[
        float | None,
        Meta(description="The hours that it lasts at the present rate there. Null: unknown, or nothing bills there."),
    ]
    sentence: Annotated[str, Meta(description="The same, for people.")]


class WorkloadMoney(Struct, frozen=True):
    """A workload's present rate of spend, and its spend today."""

    workload: Annotated[str, Meta(description="The name of the workload.")]
    dollars_per_hour: Annotated[
        float, Meta(description="The present rate of its leases and volumes, in dollars per hour.")
    ]
    today_dollars: Annotated[
        float, Meta(description="Its spend today (UTC), including the cost of its leases up to `as_of`.")
    ]
    useful_hours: Annotated[float, Meta(description="Its useful hours today, up to the last metering.")]
    dollars_per_useful_hour: Annotated[
        float | None,
        Meta(description="Its spend today by useful hour, up to the last metering. Null: no useful hours yet."),
    ]


class Savings(Struct, frozen=True):
    """The cost of useful hours, compared with the on-demand price of their time."""

    since: Annotated[Instant, Meta(description="The beginning of the comparison.")]
    as_of: Annotated[Instant, Meta(description="The end of the comparison: the instant of these figures.")]
    saved_dollars: Annotated[
        float | None,
        Meta(
            description="`compared_dollars` less `spent_dollars`, negative if we paid more. "
            "Null: no price to compare with."
        ),
    ]
    share: Annotated[
        float | None,
        Meta(description="`saved_dollars` as a share of `compared_dollars`. Null: no price to compare with."),
    ]
    spent_dollars: Annotated[float, Meta(description="The cost of the leases of cards with an on-demand price.")]
    compared_dollars: Annotated[
        float | None, Meta(description="The on-demand cost of their useful hours. Null: no price to compare with.")
    ]
    unpriced_dollars: Annotated[float, Meta(description="The cost of the leases of the cards in `unpriced`.")]
    unpriced: Annotated[list[str], Meta(description="The cards without an on-demand price, such as `2x RTX 4090`.")]


class Money(Struct, frozen=True):
    """Spend including the cost of leases up to `as_of`, the caps of the account, and the runway."""

    today_dollars: Annotated[float, Meta(description="The spend today (UTC).")]
    day_cap_dollars: Annotated[float | None, Meta(description="The cap per day. Null: none is set.")]
    month_dollars: Annotated[float, Meta(description="The spend this month (UTC).")]
    month_cap_dollars: Annotated[float | None, Meta(description="The cap per month. Null: none is set.")]
    dollars_per_hour: Annotated[
        float, Meta(description="The present rate of all leases and volumes, in dollars per hour.")
    ]
    hour_cap_dollars: Annotated[
        float | None, Meta(description="The cap of the rate, in dollars per hour. Null: none is set.")
    ]
    runway_hours: Annotated[
        float | None,
        Meta(description="The hours until the first cap or credit is used up at the present rate. Null: none will be."),
    ]
    runway_ends: Annotated[str, Meta(description="The name of that cap or credit. Empty: none will be used up.")]
    caps: Annotated[list[Cap], Meta(description="Every cap, also of markets and workloads.")]
    credit: Annotated[list[Credit], Meta(description="The credit of each market's account.")]
    workloads: Annotated[list[WorkloadMoney], Meta(description="The workloads that bill now or spent today.")]
    savings: Annotated[
        Savings | None,
        Meta(
            description="The savings of this month, at most ten minutes old while there are readers. "
            "Null: not computed yet."
        ),
    ]
