"""The numbers of `hedged`, which all its rules read."""

from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, Field

from agent.decide.deadline import multi_pool_policy
from agent.decide.strategy import Duration, Params, duration


def _within_a_day(value: timedelta) -> timedelta:
    if value > timedelta(days=1):
        raise ValueError('interruptions are remembered for a day; write at most "24h"')
    return value


def _window(value: timedelta) -> timedelta:
    if value < timedelta(minutes=5):
        raise ValueError('a rate over less than five minutes is chance; write at least "5m"')
    return _within_a_day(value)


class HedgedParams(Params):
    """The numbers of `hedged`; hedged.toml says of each what it does at both ends."""

    share_of_owner: float = Field(default=0.5, gt=0, le=1)
    """At most this share of the slots on hosts of one owner, one at least."""
    share_of_host: float = Field(default=1.0, gt=0, le=1)
    """At most this share of the slots on one host or pool of hosts, one at least."""
    share_of_market: float = Field(default=0.7, gt=0, le=1)
    """At most this share of the slots on one market, one at least, where there are several."""
    may_crowd: bool = False
    """Whether a slot may be placed outside of the shares rather than stay empty."""
    headroom: float = Field(default=0.1, ge=0, le=4)
    """Bid above the floor by up to this share of it."""
    ceiling: float = Field(default=0.9, gt=0, le=1)
    """Never bid more than this share of the same slice's ask."""
    raise_headroom: float = Field(default=0.05, ge=0, le=4)
    """When a rival must be beaten, bid above its price by this share of it."""
    least_gain: float = Field(default=0.05, ge=0, le=1)
    """Leave the cheapest way of doing nothing only for a gain of at least this share of its cost."""
    idle_worth: float = Field(default=0.6, gt=0, le=1)
    """What an hour without work is worth after a loss, as a share of the workload's `max_price`."""
    on_demand_share: float = Field(default=0.6, gt=0, le=1)
    """On-demand may cost at most this share of the workload's `max_price`, but for a deadline or warm slots."""
    leave_after: Duration = duration("10m")
    """How long an interruptible lease runs before it may be left for a cheaper offer."""
    leave_gain: float = Field(default=0.05, ge=0, le=1)
    """What share of the cost of staying such a move must gain."""
    fallback_after: Duration = duration("20m")
    """Fall back to on-demand when a slot has been down or empty for so long."""
    most_losses: float = Field(default=2.0, gt=0, le=100)
    """Fall back at once while the market takes leases so often, per slot and hour."""
    pool_window: Annotated[Duration, AfterValidator(_window)] = duration("3h")
    """How far back interruptions count for `most_losses`."""
    return_after: Duration = duration("1h")
    """How long an on-demand lease runs before it may be left."""
    return_gain: float = Field(default=0.1, ge=0, le=1)
    """What share of the cost of staying the way back must gain."""
    return_horizon_hours: float = Field(default=6.0, ge=0.5, le=168)
    """Over how many hours the way back is reckoned against staying."""
    host_rest: Annotated[Duration, AfterValidator(_within_a_day)] = duration("3h")
    """A host that interrupted the workload is not returned to from on-demand for so long."""
    keep_warm: bool = False
    """For a service: weigh in dollars where its slots are, how many spare ones are held, and when on demand."""
    short_worth: float = Field(default=24.0, ge=0, le=10_000)
    """What an hour with a slot too few is worth, in hours of all slots on demand."""
    spare_slots: int = Field(default=1, ge=0, le=16)
    """So many of the workload's slots are spare: held only while they pay."""
    cold_start: Annotated[Duration, AfterValidator(_within_a_day)] = duration("2m")
    """How long it takes from a loss until a replacement serves."""
    weigh_markets: bool = True
    """Work with a deadline on several markets: hold what finishing in time is expected to cost least on."""
    reserve: Duration = duration("10m")
    """With `weigh_markets`: time kept free before the last instant."""
    start_delay: Duration = duration("20m")
    """With `weigh_markets`: time kept free for a start of on-demand."""
    weather_hours: float = Field(default=24.0, ge=1, le=1000)
    """With `weigh_markets`: how long a market's weather is reckoned to last from now on."""
    wait_gain: float = Field(default=0.002, ge=0, le=1)
    """With `weigh_markets`: waiting must gain more than so many hours of on-demand."""
    near_price: float = Field(default=0.1, ge=0, le=1)
    """With `weigh_markets`: how much dearer a market may be and still be like its neighbour, where a move is free."""
    lower_after: Duration = duration("45m")
    """After this long without trouble, lower a raised bid."""
    lower_step: float = Field(default=0.5, ge=0, le=1)
    """Each time by this share of the way down to the host's floor plus headroom."""

    @property
    def weighing(self) -> multi_pool_policy.Numbers:
        """The numbers of the choice between markets."""
        return multi_pool_policy.Numbers(self.wait_gain, self.near_price, self.weather_hours)
