"""A seed -> a story. Every kind of trouble is in some seeds and in others not, so that few kinds can meet often."""

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace

from tests.disasters.guards import guard_draw
from tests.disasters.health import health_draw
from tests.disasters.story import CALM_FROM, Deed, Story, Strike, Work

# How many exchanges of a place are worth naming in one seed, and the share of them that is struck at full intensity.
PLACES = {
    "listing": (260, 0.06),
    "look": (40, 0.15),
    "rent": (24, 0.30),
    "release": (24, 0.30),
    "state": (24, 0.25),
    "rebid": (12, 0.25),
    "search": (60, 0.06),
    "account": (40, 0.08),
    "inbox": (30, 0.08),
    "log": (60, 0.05),
}
COMMITS, COMMIT_SHARE = 600, 0.02
LOST = ("never_left", "lost_before", "lost_after", "half")
LATE = ("slow", "too_slow")
REFUSED = ("http_500", "http_503_after", "html_403", "throttled", "malformed", "http_401", "http_404")
INVALID = {"vast": ("rebid", "state"), "runpod": ("state",)}
"""The places of each market that refuse orders as invalid."""
DEATH = ("death_before", "death_after")
LISTING_LIES = ("id", "label", "price", "state", "host", "twice", "missing_row", "empty", "stale", "date")
LOOK_LIES = ("price", "state", "host", "label", "http_404")
RENT_LIES = ("wrong_id", "refused_with_id", "no_id")
RELEASE_LIES = ("refused", "gone")
ENDLESS, NO_NUMBER = -1.0, -2.0
"""A Retry-After that says "inf", and one that says no number at all."""
WAITS = (0.0, 1.0, 30.0, 600.0, 31_536_000.0, ENDLESS, NO_NUMBER)
"""What Retry-After says."""
RISES = (1.6, 2.0, 2.5, 2.9)
"""Rises that further listings alone confirm (rule 21)."""
FACTORS = (1000.0, 0.1, 1.3, 0.0, -1.0, -2.0, -3.0)
"""Factors of a price; -1 is no number, -2 a text, and -3 leaves the field out."""
VERBS = ("pause", "resume", "drain", "undrain", "release", "lock", "done", "kill_workload")
FATES = ("host_gone", "host_offline", "rival", "exit", "storm", "stuck", "foreign", "relabel", "no_credit")
PURPOSES = ("rise", "maintenance", "near_end", "prepay")
"""What hosts of Vast and a person at its console do on purpose."""
EDITS = ("edit_price", "edit_slots", "edit_remove", "edit_cap", "edit_strategy")
LIVES = ("restart", "kill_9", "clock", "sleep", "second")
STRATEGIES = ("patient", "patient", "ondemand", "hedged", "hedged", "deadline")


def story(seed: int) -> Story:
    """Return the story of a seed."""
    dice = random.Random(f"disaster/{seed}")
    markets = dice.choices([("vast",), ("runpod",), ("vast", "runpod")], (6, 2, 4))[0]
    strikes = (*_repriced(seed, _strikes(dice, markets)), *_commits(dice), *_invalid(seed, markets))
    drawn = Story(
        seed,
        markets,
        tuple(_arrays(seed, _works(dice, markets))),
        poll=float(dice.randint(15, 60)),
        demand=dice.choice((0.0, 0.0, 1.0, 4.0)),
        instances=dice.choice((0, 0, 0, 3)),
        strikes=tuple(sorted(strikes, key=lambda each: (each.market, each.place, each.number))),
        deeds=tuple(sorted((*_deeds(dice), *_purposes(seed)), key=lambda each: each.cycle)),
    )
    return health_draw.watched(guard_draw.guarded(drawn))


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


def _strikes(dice: random.Random, markets: tuple[str, ...]) -> Iterator[Strike]:
    """Draw faults of exchanges: a few kinds for this seed, at an intensity of its own."""
    kinds = [kind for kind in (LOST, LATE, REFUSED, DEATH) if dice.random() < 0.4]
    lies = dice.random() < 0.6
    intensity = dice.choice((0.3, 1.0, 2.0))
    for market, (place, (most, share)) in itertools.product(markets, PLACES.items()):
        faults = [*itertools.chain(*kinds), *(_lies(dice, place) if lies else ())]
        for number in range(1, most + 1) if faults else ():
            if dice.random() < share * intensity * 0.5:
                yield _strike(dice, market, place, number, dice.choice(faults))


def _repriced(seed: int, strikes: Iterator[Strike]) -> Iterator[Strike]:
    """Let some false prices be likelier ones, by dice of their own."""
    dice = random.Random(f"disaster/{seed}/rises")
    rise = dice.choice(RISES)
    for strike in strikes:
        is_likely = strike.fault == "price" and dice.random() < 0.3
        yield replace(strike, amount=rise) if is_likely else strike


def _lies(dice: random.Random, place: str) -> list[str]:
    """Return the lies of a place in this seed, each as often as all other faults of a kind together."""
    lies = {"listing": LISTING_LIES, "look": LOOK_LIES, "rent": RENT_LIES, "release": RELEASE_LIES}.get(place, ())
    return [each for each in lies if dice.random() < 0.6] * 2


def _strike(dice: random.Random, market: str, place: str, number: int, fault: str) -> Strike:
    times = dice.choices((1, 2, 4, 12), (12, 3, 2, 1))[0]
    amount = {
        "throttled": dice.choice(WAITS),
        "price": dice.choice(FACTORS),
        "date": dice.choice((-3600.0, 120.0, 86_400.0)),
    }.get(fault, float(dice.randrange(8)))
    if fault == "price" and dice.random() < 0.5:
        times = dice.randint(2, 40)
    if fault in {"wrong_id", "label", "id", *DEATH}:
        times = 1
    return Strike(market, place, number, fault, times, amount)


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
