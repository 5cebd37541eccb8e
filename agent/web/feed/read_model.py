"""The read model: every figure that a cockpit shows, as of one instant. `/api/v1/openapi.json` is made from it.

1. Money is in dollars with at most six decimals. Times are ISO 8601 in UTC.
2. Text from a market is on one line, bounded, and without control characters (agent/markets/text.py).
3. Within v1, fields are added, never renamed, retyped or removed.
"""

from datetime import datetime
from typing import Annotated

import msgspec

Instant = Annotated[datetime, msgspec.Meta(tz=True)]


class Alert(msgspec.Struct, frozen=True):
    """One problem: a program reads `code`, a person reads `sentence`. `about` names the object."""

    about: str
    code: str
    sentence: str


class Market(msgspec.Struct, frozen=True):
    """A market: whether its last listing was complete, and when it was read."""

    market: str
    is_fresh: bool
    listed_at: Instant | None


class Price(msgspec.Struct, frozen=True):
    """Prices from `at` on: our bid, and floor and ask of the same number of GPUs on that host, in dollars per hour."""

    at: Instant
    bid: float | None
    floor: float | None
    ask: float | None


class Decision(msgspec.Struct, frozen=True):
    """A decision with its reason. `limit` names the limit that forbade the strategy's proposal."""

    at: Instant
    kind: str
    code: str
    sentence: str
    limit: str | None


class Measured(msgspec.Struct, frozen=True):
    """The last measurements of a lease's guard. The host could falsify these figures.

    `progress` is in the work's own unit. `kept_at` is the time of the last checkpoint in the bucket. Without one, it is
    the time at which the present running stretch began.
    """

    told_at: Instant
    progress: float | None
    kept_at: Instant | None
    checkpoint_gb: float | None
    took_seconds: float | None
    upload_seconds: float | None
    restore_seconds: float | None


class Slot(msgspec.Struct, frozen=True):
    """A slot with its last lease. Without a lease its state is `empty`.

    `dollars_per_hour` is the present rate of all leases of the slot. `bid` is null on demand. `floor` and `ask` are the
    last that were seen. `prices` are the changes of the last day, oldest first. `useful_share` is the useful part of
    today's paid time of its present leases. `decision` is the last one about the slot. `why` says why the slot does not
    run. `is_configured` is false for a lease without a configured slot, which bills too. `measured` is null without a
    guard that reports to a bucket.
    """

    slot: str
    state: str
    is_configured: bool
    lease: str | None
    market: str | None
    host: str | None
    gpu: str | None
    gpus: int | None
    tenure: str | None
    since: Instant | None
    dollars_per_hour: float
    bid: float | None
    floor: float | None
    ask: float | None
    prices: list[Price]
    useful_share: float | None
    decision: Decision | None
    why: str
    measured: Measured | None


class Cap(msgspec.Struct, frozen=True):
    """A cap with the committed spend that counts against it. `window` is per_hour, per_day, per_month or total."""

    scope: str
    name: str
    window: str
    used_dollars: float
    cap_dollars: float


class Credit(msgspec.Struct, frozen=True):
    """The credit of a market's account, and how many hours it lasts at the present rate."""

    market: str
    dollars: float | None
    lasts_hours: float | None
    sentence: str


class WorkloadMoney(msgspec.Struct, frozen=True):
    """A workload's present rate of spend and its spend today, including the cost of its leases up to `as_of`.

    `useful_hours` and `dollars_per_useful_hour` are of today up to the last metering. `dollars_per_useful_hour` is null
    while there are no useful hours.
    """

    workload: str
    dollars_per_hour: float
    today_dollars: float
    useful_hours: float
    dollars_per_useful_hour: float | None


class Savings(msgspec.Struct, frozen=True):
    """The useful hours since `since`, compared with the on-demand price of their time, as of their own instant `as_of`.

    `spent_dollars` is the cost of the leases of cards with an on-demand price. `compared_dollars` is the on-demand cost
    of their useful hours. `saved_dollars` is the difference, negative if we paid more. `share` is `saved_dollars` as a
    share of `compared_dollars`. Without a price to compare with, a figure is null. `unpriced_dollars` were spent on the
    cards in `unpriced`, which have no such price.
    """

    since: Instant
    as_of: Instant
    saved_dollars: float | None
    share: float | None
    spent_dollars: float
    compared_dollars: float | None
    unpriced_dollars: float
    unpriced: list[str]


class Money(msgspec.Struct, frozen=True):
    """Spend including the cost of leases up to `as_of`, the caps over everything, and the runway at the running rate.

    `runway_hours` is the time until a cap or credit is used up first, or null if none will be; `runway_ends` names it.
    `savings` are of this month and have their own instant, at most ten minutes old while there are readers. They are
    null until they are computed.
    """

    today_dollars: float
    day_cap_dollars: float | None
    month_dollars: float
    month_cap_dollars: float | None
    dollars_per_hour: float
    hour_cap_dollars: float | None
    runway_hours: float | None
    runway_ends: str
    caps: list[Cap]
    credit: list[Credit]
    workloads: list[WorkloadMoney]
    savings: Savings | None


class Happened(msgspec.Struct, frozen=True):
    """One event of the ledger."""

    id: int | None
    at: Instant
    kind: str
    slot: str | None
    lease: str | None
    market: str | None
    host: str | None
    cause: str | None
    bid: float | None
    dollars: float | None
    why: str


class Array(msgspec.Struct, frozen=True):
    """How far an array is: its slots, and the cost and the hours that it still needs, by its finished slots.

    The figures to go are medians, with the ends of their 90 % intervals; null before five slots are done.
    """

    workload: str
    slots: int
    done: int
    live: int
    held: int
    dollars_to_go: float | None
    dollars_to_go_low: float | None
    dollars_to_go_high: float | None
    hours_to_go: float | None
    hours_to_go_low: float | None
    hours_to_go_high: float | None
    sentence: str


class Demand(msgspec.Struct, frozen=True):
    """How many slots a demand wants, by the last cycle: `least` to `most`, `live` of them live now.

    `tasks` are those of the last answer, which was read at `answered_at`; both are null before the first one.
    `silent_since` is the first question since then without an answer, or null. `by_hand_until` is null unless a person
    has set `wanted`.
    """

    workload: str
    least: int
    most: int
    wanted: int
    live: int
    tasks: int | None
    answered_at: Instant | None
    silent_since: Instant | None
    by_hand_until: Instant | None
    sentence: str


class Fleet(msgspec.Struct, frozen=True):
    """The fleet as of `as_of`.

    `last_cycle_at` is the instant of the last finished cycle. `is_stale` is true if that is more than four polls ago.
    `alerts` are problems; `notes` need no action. `is_killed` is true while a `gpubid kill` is in force.
    `refused_configuration` has the mistakes of the last reload. `in_doubt` counts orders without a known outcome.
    `events` are the last ones, newest first.
    """

    version: str
    as_of: Instant
    last_cycle_at: Instant | None
    poll_seconds: float
    is_stale: bool
    is_well: bool
    is_killed: bool
    alerts: list[Alert]
    notes: list[Alert]
    refused_configuration: list[str]
    markets: list[Market]
    money: Money
    wanted: int
    running: int
    in_doubt: int
    arrays: list[Array]
    demands: list[Demand]
    slots: list[Slot]
    events: list[Happened]


class Beat(msgspec.Struct, frozen=True):
    """The instants and the money of the newest document. All other values are still those of the last document."""

    as_of: Instant
    last_cycle_at: Instant | None
    is_stale: bool
    money: Money


class Refusal(msgspec.Struct, frozen=True):
    """The reason why there is no answer: a code for programs and a sentence for people."""

    error: str
    sentence: str
