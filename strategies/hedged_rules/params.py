"""The numbers of `hedged`, which all its rules read."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, ValidationInfo

from agent.decide.deadline import multi_pool_policy
from agent.decide.strategy import AUTO, Auto, Duration, Params, duration

MOST_TARGET = 0.9999
"""The highest share of the time: more could not be told from always in the weeks that are remembered."""


def _within_a_day(value: timedelta) -> timedelta:
    if value > timedelta(days=1):
        raise ValueError('interruptions are remembered for a day; write at most "24h"')
    return value


def _window(value: timedelta) -> timedelta:
    if value < timedelta(minutes=5):
        raise ValueError('a rate over less than five minutes is chance; write at least "5m"')
    return _within_a_day(value)


def _share_of_time(value: float, others: ValidationInfo) -> float:
    """Return a target. `others` has the numbers that stand before it."""
    if value > MOST_TARGET:
        raise ValueError(f"is a share of the time, at most {MOST_TARGET}; write 0.99 for 99 %, or 0 for no target")
    if value and others.data.get("short_worth", AUTO) != AUTO:
        raise ValueError('finds the worth that short_worth sets; write target = 0, or short_worth = "auto"')
    if value and not others.data.get("keep_warm", True):
        raise ValueError("is for a service that is kept warm; write keep_warm = true, or target = 0")
    return value


class HedgedParams(Params):
    """The numbers of `hedged`; hedged.toml explains both ends of each."""

    unvalued: ClassVar[Mapping[str, float]] = {"idle_worth": 0.6, "on_demand_share": 0.6, "short_worth": 24.0}

    share_of_owner: float = Field(default=0.5, gt=0, le=1)
    """At most this share of the slots on hosts of one owner, but at least one slot."""
    share_of_host: float = Field(default=1.0, gt=0, le=1)
    """At most this share of the slots on one host or pool of hosts, but at least one slot."""
    share_of_market: float = Field(default=0.7, gt=0, le=1)
    """At most this share of the slots on one market, if there are several besides fallbacks, but at least one slot."""
    may_crowd: bool = False
    """Whether a slot that finds no offer within the shares may exceed them."""
    headroom: float = Field(default=0.1, ge=0, le=4)
    """Bid at most this share of the floor above it."""
    ceiling: float = Field(default=0.9, gt=0, le=1)
    """Never bid more than this share of the same offer's ask."""
    raise_headroom: float = Field(default=0.05, ge=0, le=4)
    """To outbid a rival, bid this share of its price above it."""
    least_gain: float = Field(default=0.05, ge=0, le=1)
    """Raise or move only if that is cheaper than waiting by this share of the cost of waiting."""
    idle_worth: Annotated[float, Field(gt=0, le=1)] | Auto = AUTO
    """Price of an hour without work after a loss, as a share of the workload's value; "auto": all of it."""
    on_demand_share: Annotated[float, Field(gt=0, le=1)] | Auto = AUTO
    """On-demand may cost at most this share of `max_price`; "auto": what an hour is worth. Not for warm slots."""
    leave_after: Duration = duration("10m")
    """How long a healthy interruptible lease runs before the slot may move to a cheaper offer."""
    leave_gain: float = Field(default=0.05, ge=0, le=1)
    """Such a move must save at least this share of the cost of staying."""
    fallback_after: Duration = duration("20m")
    """Fall back to on-demand when a slot has been down or empty for this long."""
    most_losses: float = Field(default=2.0, gt=0, le=100)
    """Fall back at once while the market interrupts at least this often, per slot and hour."""
    pool_window: Annotated[Duration, AfterValidator(_window)] = duration("3h")
    """How far back interruptions count for `most_losses`."""
    return_after: Duration = duration("1h")
    """How long an on-demand lease runs before the slot may move away."""
    return_gain: float = Field(default=0.1, ge=0, le=1)
    """The move away from on-demand must save at least this share of the cost of staying."""
    return_horizon_hours: float = Field(default=6.0, ge=0.5, le=168)
    """Hours over which the move away from on-demand is compared with staying."""
    host_rest: Annotated[Duration, AfterValidator(_within_a_day)] = duration("3h")
    """After on-demand, do not move back to a host that interrupted the workload within this time."""
    keep_warm: bool = False
    """For a service: choose by cost where slots are, how many are spare, and when they run on demand."""
    short_worth: Annotated[float, Field(ge=0, le=10_000)] | Auto = AUTO
    """Cost of an hour with one slot too few, in hours of all slots on demand; "auto": what all slots are worth."""
    target: Annotated[float, AfterValidator(_share_of_time)] = Field(
        default=0.0, ge=0, examples=[0.99], json_schema_extra={"maximum": MOST_TARGET}
    )
    """For a service with `keep_warm`: the share of the time with enough warm slots; 0: `short_worth` decides."""
    spare_slots: int = Field(default=1, ge=0, le=16)
    """Number of the workload's slots that are spare: they have a lease only while it saves more than it costs."""
    cold_start: Annotated[Duration, AfterValidator(_within_a_day)] = duration("2m")
    """Time from a loss until a replacement serves."""
    weigh_markets: bool = True
    """For one slot with a deadline: choose by the expected cost of finishing in time."""
    reserve: Duration = duration("10m")
    """With `weigh_markets`: time kept free before the last instant."""
    start_delay: Duration = duration("20m")
    """With `weigh_markets`: time kept free for a start of on-demand."""
    weather_hours: float = Field(default=24.0, ge=1, le=1000)
    """With `weigh_markets`: how many hours a good or bad time of a market lasts on average."""
    wait_gain: float = Field(default=0.002, ge=0, le=1)
    """With `weigh_markets`: waiting must save more than the price of this many hours on demand."""
    near_price: float = Field(default=0.1, ge=0, le=1)
    """With `weigh_markets`: how much more expensive a market may be and still be the same place, if moves are free."""
    lower_after: Duration = duration("45m")
    """Lower a raised bid after this long without an interruption."""
    lower_step: float = Field(default=0.5, ge=0, le=1)
    """Each step lowers the bid by this share of the distance to the host's floor plus headroom."""

    def warm_slots(self, slots: int) -> int:
        """Return how many of so many slots of a service are kept warm: those that are not spare."""
        return max(slots - self.spare_slots, 1) if self.keep_warm else 0

    def warm_target(self) -> float:
        """Return the share of the time in which those slots shall be warm; 0 without a target."""
        return self.target

    def kept_free(self) -> tuple[timedelta, timedelta]:
        """Return the times that a deadline job keeps free: `reserve` and `start_delay`."""
        return self.reserve, self.start_delay

    @property
    def short_hours(self) -> float:
        """`short_worth` as a number; the one without a stated value if it is "auto"."""
        return self.unvalued["short_worth"] if self.short_worth == AUTO else self.short_worth

    @property
    def weighing(self) -> multi_pool_policy.MultiPoolParams:
        """The numbers of the choice between markets."""
        return multi_pool_policy.MultiPoolParams(self.wait_gain, self.near_price, self.weather_hours)
