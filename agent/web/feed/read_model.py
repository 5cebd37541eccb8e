"""The read model: every figure that a cockpit shows, as of one instant. `/api/v1/openapi.json` is made from it.

1. Money is in dollars with at most six decimals. Times are ISO 8601 in UTC.
2. Text from a market is on one line, bounded, and without control characters (agent/markets/text.py).
3. Within v1, fields are added, never renamed, retyped or removed.
4. Every field has a description, which the readers of the API see: its unit, and what a null means.
"""

from typing import Annotated

from msgspec import Meta, Struct

from agent.web.feed.money_model import Money
from agent.web.feed.slot_model import Instant, Slot


class Alert(Struct, frozen=True):
    """One problem, or one note."""

    about: Annotated[str, Meta(description="The object that it concerns.")]
    code: Annotated[str, Meta(description="Its code, for programs.")]
    sentence: Annotated[str, Meta(description="The problem and its fix, or the note, for people.")]


class Market(Struct, frozen=True):
    """A market and its last listing of our instances."""

    market: Annotated[str, Meta(description="The name of the market.")]
    is_fresh: Annotated[bool, Meta(description="Whether the last listing was complete.")]
    listed_at: Annotated[
        Instant | None, Meta(description="The instant of the last complete listing. Null: there was none yet.")
    ]


class Happened(Struct, frozen=True):
    """One event of the ledger."""

    id: Annotated[int | None, Meta(description="Its number in the ledger. Null: it has none.")]
    at: Annotated[Instant, Meta(description="The instant of the event, as far as it is known.")]
    kind: Annotated[str, Meta(description="Its kind, such as `lease.interrupted`.")]
    slot: Annotated[str | None, Meta(description="The slot, such as `train/0`. Null: it concerns no slot.")]
    lease: Annotated[str | None, Meta(description="The id of the lease. Null: it concerns no lease.")]
    market: Annotated[str | None, Meta(description="The name of the market. Null: it concerns no market.")]
    host: Annotated[str | None, Meta(description="The host, by the market's id. Null: it concerns no host.")]
    cause: Annotated[str | None, Meta(description="The cause of an interruption. Null: it is no interruption.")]
    bid: Annotated[float | None, Meta(description="Our bid then, in dollars per hour. Null: it concerns no bid.")]
    dollars: Annotated[float | None, Meta(description="The amount of money. Null: it has no amount.")]
    why: Annotated[str, Meta(description="The evidence or the reason, for people.")]


class Array(Struct, frozen=True):
    """How far an array is, and the cost and the hours that it still needs, judged by its finished slots.

    The figures to go are medians with the ends of their 90 % intervals. Before five slots are done, each is null.
    """

    workload: Annotated[str, Meta(description="The name of the array.")]
    slots: Annotated[int, Meta(description="The number of its slots.")]
    done: Annotated[int, Meta(description="How many of them are done.")]
    live: Annotated[int, Meta(description="How many have an open lease and are neither done nor held.")]
    held: Annotated[int, Meta(description="How many wait for a person.")]
    dollars_to_go: Annotated[float | None, Meta(description="The dollars to go. Null: not known yet.")]
    dollars_to_go_low: Annotated[
        float | None, Meta(description="The low end of the dollars to go. Null: not known yet.")
    ]
    dollars_to_go_high: Annotated[
        float | None, Meta(description="The high end of the dollars to go. Null: not known yet.")
    ]
    hours_to_go: Annotated[float | None, Meta(description="The hours to go. Null: not known yet.")]
    hours_to_go_low: Annotated[float | None, Meta(description="The low end of the hours to go. Null: not known yet.")]
    hours_to_go_high: Annotated[float | None, Meta(description="The high end of the hours to go. Null: not known yet.")]
    sentence: Annotated[str, Meta(description="The same, for people.")]


class Demand(Struct, frozen=True):
    """How many slots a demand wants, by the last cycle."""

    workload: Annotated[str, Meta(description="The name of the workload.")]
    least: Annotated[int, Meta(description="The fewest slots that are ever wanted.")]
    most: Annotated[int, Meta(description="The most slots that are ever wanted.")]
    wanted: Annotated[int, Meta(description="How many slots are wanted now.")]
    live: Annotated[int, Meta(description="How many slots are live now.")]
    tasks: Annotated[int | None, Meta(description="The tasks of the last answer. Null: no answer yet.")]
    answered_at: Annotated[Instant | None, Meta(description="The instant of the last answer. Null: no answer yet.")]
    silent_since: Annotated[
        Instant | None,
        Meta(
            description="The first question since the last answer that got none. Null: the last question was answered."
        ),
    ]
    by_hand_until: Annotated[
        Instant | None, Meta(description="The instant until which a person has set `wanted`. Null: no person has.")
    ]
    sentence: Annotated[str, Meta(description="The same with its reason, for people.")]


class Fleet(Struct, frozen=True):
    """The fleet as of `as_of`."""

    version: Annotated[str, Meta(description="The version of gpubid.")]
    as_of: Annotated[Instant, Meta(description="The instant of all figures.")]
    last_cycle_at: Annotated[
        Instant | None, Meta(description="The instant of the last finished cycle. Null: none yet.")
    ]
    poll_seconds: Annotated[float, Meta(description="The seconds between two cycles.")]
    is_stale: Annotated[
        bool, Meta(description="Whether the last cycle is more than four polls ago, or none has ended.")
    ]
    is_well: Annotated[bool, Meta(description="Whether there are no alerts.")]
    is_killed: Annotated[bool, Meta(description="Whether a `gpubid kill` is in force.")]
    alerts: Annotated[list[Alert], Meta(description="The problems.")]
    notes: Annotated[list[Alert], Meta(description="Facts that need no action.")]
    refused_configuration: Annotated[
        list[str], Meta(description="The mistakes for which the last reload was refused. Empty: it was not refused.")
    ]
    markets: Annotated[list[Market], Meta(description="The markets, by name.")]
    money: Annotated[Money, Meta(description="Spend, caps, credit and savings.")]
    wanted: Annotated[int, Meta(description="The number of configured slots.")]
    running: Annotated[int, Meta(description="How many of them run.")]
    in_doubt: Annotated[int, Meta(description="The number of orders without a known outcome.")]
    arrays: Annotated[list[Array], Meta(description="The arrays.")]
    demands: Annotated[list[Demand], Meta(description="The workloads with a demand.")]
    slots: Annotated[list[Slot], Meta(description="The configured slots, then the leases without one.")]
    events: Annotated[list[Happened], Meta(description="The last events, newest first.")]


class Beat(Struct, frozen=True):
    """The instants and the money of the newest document. All other values are still those of the last document."""

    as_of: Annotated[Instant, Meta(description="The instant of these figures.")]
    last_cycle_at: Annotated[
        Instant | None, Meta(description="The instant of the last finished cycle. Null: none yet.")
    ]
    is_stale: Annotated[
        bool, Meta(description="Whether the last cycle is more than four polls ago, or none has ended.")
    ]
    money: Annotated[Money, Meta(description="Spend, caps, credit and savings.")]


class Refusal(Struct, frozen=True):
    """The reason why there is no answer."""

    error: Annotated[str, Meta(description="Its code, for programs.")]
    sentence: Annotated[str, Meta(description="The reason, for people.")]
