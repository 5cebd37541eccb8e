"""The auction of one host: which renters run, and the lowest bid that would run.

1. On-demand renters outrank every bid; among bids the higher price per GPU wins.
2. Between equal bids the running one stays, then the earlier one runs (assumed: the vendor documents no rule for ties).
3. A renter runs with all the GPUs of its slice or not at all.
"""

import dataclasses
import math
from collections.abc import Iterable, Sequence

from agent.simulator.vast.model import Contract, Rival

TICK = 0.0001  # $/h, the least by which a bid beats another one
ALWAYS = math.inf  # the price per GPU of an on-demand renter, as far as ranking goes


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """One renter's wish on the host."""

    holder: Rival | Contract
    gpus: tuple[int, ...]
    per_gpu: float  # $/h, ALWAYS on demand
    is_running: bool
    since: float


def winners(claims: Iterable[Claim]) -> list[Claim]:
    """Return the claims that run, the highest first."""
    ranked = sorted(claims, key=lambda claim: (-claim.per_gpu, not claim.is_running, claim.since))
    taken: set[int] = set()
    won = []
    for claim in ranked:
        if taken.isdisjoint(claim.gpus):
            taken.update(claim.gpus)
            won.append(claim)
    return won


def in_the_way(gpus: Sequence[int], won: Iterable[Claim]) -> Claim | None:
    """Return the highest of the winning claims that overlap these GPUs."""
    wanted = frozenset(gpus)
    return max(
        (claim for claim in won if not wanted.isdisjoint(claim.gpus)), key=lambda claim: claim.per_gpu, default=None
    )


def price_to_win(gpus: Sequence[int], host_floor: float, won: Iterable[Claim]) -> float | None:
    """Return the lowest bid that would run against these winners; None if one of them rents on demand."""
    highest = in_the_way(gpus, won)
    if highest is None:
        return host_floor
    if highest.per_gpu == ALWAYS:
        return None
    over = math.ceil(highest.per_gpu * len(gpus) / TICK + 1e-6) * TICK
    if over <= highest.per_gpu * len(gpus) + TICK / 100:
        over += TICK
    return max(host_floor, round(over, 6))
