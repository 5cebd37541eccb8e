"""The read model: every figure that a cockpit shows, as of one instant. `/api/v1/openapi.json` is made from it.

1. Money is in dollars with at most six decimals; times are ISO 8601 in UTC.
2. Text that a market wrote is on one line, without control characters and bounded (agent/markets/text.py).
3. Within v1, fields are added, never renamed, retyped or removed.
"""

from datetime import datetime
from typing import Annotated

import msgspec

Instant = Annotated[datetime, msgspec.Meta(tz=True)]


class Alert(msgspec.Struct, frozen=True):
    """One thing to look at: a program reads `code`, a person `sentence`; `about` names the object."""

    about: str
    code: str
    sentence: str


class Market(msgspec.Struct, frozen=True):
    """A market: whether its last listing was complete, and when it was read."""

    market: str
    is_fresh: bool
    listed_at: Instant | None


class Price(msgspec.Struct, frozen=True):
    """From `at` on: our bid, the floor and the ask of the same number of GPUs on that host, in dollars per hour."""

    at: Instant
    bid: float | None
    floor: float | None
    ask: float | None


class Decision(msgspec.Struct, frozen=True):
    """A decision with its reason; `limit` names the limit that forbade the strategy's proposal."""

    at: Instant
    kind: str
    code: str
    sentence: str
    limit: str | None


class Measured(msgspec.Struct, frozen=True):
    """What the guard of a lease measured last; the host could falsify these figures.

    `progress` is in the work's own unit. `kept_at` is when the last checkpoint in the bucket was taken, or the stretch
    of running began without one.
    """

    told_at: Instant
    progress: float | None
    kept_at: Instant | None
    checkpoint_gb: float | None
    took_seconds: float | None
    upload_seconds: float | None
    restore_seconds: float | None


class Slot(msgspec.Struct, frozen=True):
    """A slot with its last lease; without a lease its state is `empty`.

    `dollars_per_hour` is what every lease of the slot bills now. `bid` is null on demand; `floor` and `ask` are the
    last that were seen. `prices` are the changes of the last day, oldest first. `useful_share` is the part of the paid
    time of its present leases today that was useful. `decision` is the last one about it. `why` says why it does not
    run. `is_configured` is false for a lease that fills no slot: it bills all the same. `measured` is null without a
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
    """A cap with the committed spend that counts against it; `window` is per_hour, per_day, per_month or total."""

    scope: str
    name: str
    window: str
    used_dollars: float
    cap_dollars: float


class Credit(msgspec.Struct, frozen=True):
    """What a market's account can still spend, and how many hours it lasts at the present rate."""

    market: str
    dollars: float | None
    lasts_hours: float | None
    sentence: str


class WorkloadMoney(msgspec.Struct, frozen=True):
    """A workload's rate of spend now and its spend today, with what its leases owe up to `as_of`.

    `useful_hours` and `dollars_per_useful_hour` are of today up to the last metering; the latter is null before any.
    """

    workload: str
    dollars_per_hour: float
    today_dollars: float
    useful_hours: float
    dollars_per_useful_hour: float | None


class Savings(msgspec.Struct, frozen=True):
    """The useful hours since `since` against the on-demand price of their time, as of its own instant `as_of`.

    `spent_dollars` is what the leases of cards with such a price cost, `compared_dollars` what their useful hours cost
    on demand; `saved_dollars` is the difference, negative where we paid more, and `share` its part of the latter. Null
    is what has no price to compare with: `unpriced_dollars` were spent on the cards of `unpriced`.
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
    """Spend with what leases owe up to `as_of`, the caps over everything, and the runway at the running rate.

    `runway_hours` is the time until the first cap or credit is used up; null if none will be. `runway_ends` says which.
    `savings` are of this month and have their own date, at most ten minutes old while somebody watches; null until they
    are worked out.
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


class Fleet(msgspec.Struct, frozen=True):
    """The fleet as of `as_of`.

    `last_cycle_at` is the instant that the last finished cycle saw; `is_stale` is true where that is more than four
    polls ago. `alerts` are what is wrong, `notes` what is only to be known. `is_killed` is true while a `gpubid kill`
    is in force. `refused_configuration` are the mistakes of the last reload. `in_doubt` counts orders without a known
    outcome. `events` are the last ones, newest first.
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
    slots: list[Slot]
    events: list[Happened]


class Beat(msgspec.Struct, frozen=True):
    """Only time has passed: the instants and the money of the newest document; the rest of the last one holds."""

    as_of: Instant
    last_cycle_at: Instant | None
    is_stale: bool
    money: Money


class Refusal(msgspec.Struct, frozen=True):
    """Why there is no answer: a code for programs and a sentence for people."""

    error: str
    sentence: str
