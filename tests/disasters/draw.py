"""A seed -> a story. Every kind of trouble is in some seeds and in others not, so that few kinds can meet often."""

import random
from collections.abc import Iterator
from dataclasses import replace

from tests.disasters import strikes
from tests.disasters.auctions import auction_draw
from tests.disasters.clouds import cloud_draw
from tests.disasters.guards import guard_draw
from tests.disasters.health import health_draw
from tests.disasters.idleness import idle_draw
from tests.disasters.kept_hosts import kept_draw
from tests.disasters.story import CALM_FROM, Deed, Story, Strike, Work

COMMITS, COMMIT_SHARE = 600, 0.02
INVALID = {"vast": ("rebid", "state"), "runpod": ("state",)}
"""The places of each market that refuse orders as invalid."""
RISES = (1.6, 2.0, 2.5, 2.9)
"""Rises that further listings alone confirm (rule 21)."""
VERBS = ("pause", "resume", "drain", "undrain", "release", "lock", "done", "kill_workload")
FATES = ("host_gone", "host_offline", "rival", "exit", "storm", "stuck", "foreign", "relabel", "no_credit")
PURPOSES = ("rise", "maintenance", "near_end", "prepay")
"""What hosts of Vast and a person at its console do on purpose."""
EDITS = ("edit_price", "edit_slots", "edit_remove", "edit_cap", "edit_strategy")
LIVES = ("restart", "kill_9", "clock", "sleep", "second")
TERMS_SHARE = 0.25
"""The share of stories in which a market tells the other terms of leases wrong."""
STRATEGIES = ("patient", "patient", "ondemand", "hedged", "hedged", "deadline")


def story(seed: int) -> Story:
    """Return the story of a seed."""
    dice = random.Random(f"disaster/{seed}")
    markets = dice.choices([("vast",), ("runpod",), ("vast", "runpod")], (6, 2, 4))[0]
    struck = (*_repriced(seed, strikes.drawn(dice, markets)), *_commits(dice), *_invalid(seed, markets))
    struck = (*struck, *_terms(seed, markets))
    drawn = Story(
        seed,
        markets,
        tuple(_arrays(seed, _works(dice, markets))),
        poll=float(dice.randint(15, 60)),
        demand=dice.choice((0.0, 0.0, 1.0, 4.0)),
        instances=dice.choice((0, 0, 0, 3)),
        strikes=tuple(sorted(struck, key=lambda each: (each.market, each.place, each.number))),
        deeds=tuple(sorted((*_deeds(dice), *_purposes(seed)), key=lambda each: each.cycle)),
    )
    before = auction_draw.auctioned(health_draw.watched(guard_draw.guarded(drawn)))
    return cloud_draw.clouded(idle_draw.idled(kept_draw.kept(before)))


def _works(dice: random.Random, markets: tuple[str, ...]) -> Iterator[Work]:
    for number in range(dice.choices((1, 2, 3, 4, 5, 6), (5, 5, 3, 2, 1, 1))[0]):
        kind = dice.choice(("batch", "service"))
        strategy = dice.choice(STRATEGIES)
        if strategy == "deadline":
            kind = "batch"
        own = (dice.choice(markets),) if dice.random() < 0.3 else ()
        # One never ends, so that there is a slot to judge at the end of every story.
        ends = dice.choice((0.0, 0.0, 1800.0)) if kind == "batch" and number else 0.0
        slots = 1 if strategy == "deadline" else dice.choices((1, 2, 3), (5, 2, 1))[0]
        yield Work(f"w{number}", kind, strategy, slots, own, is_read=dice.random() < 0.3, ends_after=ends)


def _arrays(seed: int, works: Iterator[Work]) -> Iterator[Work]:
    """Let some batches of several slots be arrays, by dice of their own."""
    dice = random.Random(f"disaster/{seed}/arrays")
    for work in works:
        is_array = work.kind == "batch" and work.slots > 1 and dice.random() < 0.5
        yield replace(work, at_once=dice.choice((1, 2))) if is_array else work


def _repriced(seed: int, strikes: Iterator[Strike]) -> Iterator[Strike]:
    """Let some false prices be likelier ones, by dice of their own."""
    dice = random.Random(f"disaster/{seed}/rises")
    rise = dice.choice(RISES)
    for strike in strikes:
        is_likely = strike.fault == "price" and dice.random() < 0.3
        yield replace(strike, amount=rise) if is_likely else strike


def _terms(seed: int, markets: tuple[str, ...]) -> Iterator[Strike]:
    """Draw listings with false terms of leases, by dice of their own. Early seeds stay as they are."""
    dice = random.Random(f"disaster/{seed}/terms")
    if seed >= health_draw.FIRST and "vast" in markets and dice.random() < TERMS_SHARE:
        for number in sorted(dice.sample(range(5, 220), 6)):
            yield Strike("vast", "listing", number, "term", dice.choice((1, 1, 2, 4)), float(dice.randrange(5)))


def _commits(dice: random.Random) -> Iterator[Strike]:
    kinds = [each for each in ("full", "full_after", "death_before", "death_after") if dice.random() < 0.3]
    intensity = dice.choice((0.2, 1.0))
    for number in range(1, COMMITS + 1) if kinds else ():
        if dice.random() < COMMIT_SHARE * intensity:
            fault = dice.choice(kinds)
            times = dice.choice((1, 1, 3, 20)) if fault == "full" else 1
            yield Strike("ledger", "commit", number, fault, times)


def _deeds(dice: random.Random) -> Iterator[Deed]:
    for kinds, often in ((VERBS, 3), (FATES, 5), (EDITS, 2), (LIVES, 3)):
        if dice.random() < 0.5:
            continue
        for _ in range(dice.randint(1, often)):
            yield Deed(dice.randrange(2, CALM_FROM), dice.choice(kinds), dice.randrange(64), dice.random())
    if dice.random() < 0.8:
        yield Deed(CALM_FROM, "resume_all")
    if dice.random() < 0.35:
        began = dice.randrange(5, CALM_FROM)
        yield Deed(began, dice.choice(("kill", "kill", "kill_keep")), 0, 0.0)
        if dice.random() < 0.7:
            yield Deed(min(began + dice.randint(5, 60), CALM_FROM), "lift")
    if dice.random() < 0.1:
        # Shortly before good weather, a kill that a person takes back: all slots have to come up again.
        began = CALM_FROM - dice.randint(4, 12)
        yield Deed(began, "kill")
        yield Deed(began + 3, "lift")


def _invalid(seed: int, markets: tuple[str, ...]) -> Iterator[Strike]:
    """Draw stretches in which a market takes no start, no pause or no bid, by dice of their own."""
    dice = random.Random(f"disaster/{seed}/invalid")
    places = [(market, place) for market in markets for place in INVALID[market] if dice.random() < 0.05]
    for market, place in places:
        yield Strike(market, place, dice.randint(1, 4), "invalid", dice.choice((1, 2, 4, 8)))


def _purposes(seed: int) -> Iterator[Deed]:
    """Draw deeds of hosts with dice of their own. All else in a story is the same with and without them."""
    dice = random.Random(f"disaster/{seed}/purposes")
    for _ in range(dice.choice((0, 0, 1, 2, 4))):
        yield Deed(dice.randrange(2, CALM_FROM), dice.choice(PURPOSES), dice.randrange(64), dice.random())
