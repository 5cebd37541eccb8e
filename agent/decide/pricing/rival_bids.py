"""Rivals' bids over the host's floor, learned from the outbids that we saw.

Theory: some losses to the market are to on-demand renters, whom no bid beats. The others are to rivals, whose bids over
the floor follow a law. Over the steps of `domain.outbids`, the chance that a rival above one step is below the next has
a Beta prior; the assumed law weighs `PRIOR_WEIGHT` outbids. The chance to be above a step is the product of the shares
left at the steps before. Source: Beta-binomial conjugacy (Gelman et al., Bayesian Data Analysis, 3rd ed., section 2.4).

Censored history: a stay that goes on, or that we ended, is exposure without a loss. It counts as such in the rate of
losses, which this law only divides. A rival is seen only if it bid more than we did, so an outbid counts at a step only
if our own bid was not above that step. This is the product-limit estimate of truncated data (Lynden-Bell, MNRAS 155,
1971, p. 95).

Invariants:
1. Without an observation the law is the assumed one.
2. The higher the rivals' bids, all else equal, the fewer losses a headroom avoids.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass

from agent.domain.market.host import HostRecord
from agent.domain.market.outbids import STEPS, Outbids

RIVAL_BID = (2.76, 0.46)
"""The assumed law of rivals' bids over the floor, log-normal, as (median, log deviation). The median is the recorded
jump of 2.3 over bids of 1.2 times the floor (16 outbids, inbox of 2026-08-16). The deviation is that of the seven jumps
at hand."""

DISPLACED_SHARE = 0.25
"""The share of losses at the floor that are to on-demand renters, before any observation. Assumed."""

PRIOR_WEIGHT = 16.0
"""The weight of the assumed law in losses: as many as its median was measured from."""


@dataclass(frozen=True, slots=True)
class Rivals:
    """A law of losses to the market.

    `displaced` is the share of losses at the floor that are to on-demand renters. `above` has, for each step, the share
    of the rivals above the floor who also outbid a bid at that step.
    """

    displaced: float
    above: tuple[float, ...]

    def losing_share(self, headroom: float) -> float:
        """Return the share of the losses at the floor that still happen at this headroom.

        Losses to on-demand renters remain. Of the losses to rivals, those to bids above the headroom remain.
        """
        return self.displaced + (1.0 - self.displaced) * self.outbidding(headroom)

    def outbidding(self, headroom: float) -> float:
        """Return the share of the rivals above the floor who are above a headroom; within a step by the assumed law."""
        step = max(bisect_right(STEPS, headroom) - 1, 0)
        mine, assumed = (*self.above, 0.0), (*_ASSUMED_ABOVE, 0.0)
        share = (mine[step] - mine[step + 1]) / (assumed[step] - assumed[step + 1])
        return mine[step + 1] + share * (_assumed(max(headroom, 0.0)) - assumed[step + 1])


def learned(record: HostRecord) -> Rivals:
    """Return the law from the record of some hosts, with its decayed counts."""
    above = _above(record.outbids)
    # A bid of ours at a headroom was outbid less often than one at the floor; the share corrects for that.
    at_floor = sum(count / share for count, share in zip(record.outbids.ours, above, strict=True))
    losses = PRIOR_WEIGHT + record.displaced + at_floor
    return Rivals((PRIOR_WEIGHT * DISPLACED_SHARE + record.displaced) / losses, above)


def _above(seen: Outbids) -> tuple[float, ...]:
    found, left, watched = [1.0], PRIOR_WEIGHT, 0.0
    for step, below in enumerate(_ASSUMED_ABOVE[1:]):
        watched += seen.ours[step]
        passed = watched - seen.rivals[step]
        after = PRIOR_WEIGHT * below
        found.append(found[-1] * (after + passed) / (left + watched))
        left, watched = after, passed
    return tuple(found)


def _assumed(headroom: float) -> float:
    """Return the share of the rivals above the floor who are above a headroom, by the assumed law."""
    return math.erfc((math.log1p(headroom) - _LOG_MEDIAN) / _SPREAD) / math.erfc(-_LOG_MEDIAN / _SPREAD)


_LOG_MEDIAN, _SPREAD = math.log(RIVAL_BID[0]), RIVAL_BID[1] * math.sqrt(2.0)
_ASSUMED_ABOVE = tuple(_assumed(step) for step in STEPS)

ASSUMED = learned(HostRecord("", ""))
"""The law before any observation."""
