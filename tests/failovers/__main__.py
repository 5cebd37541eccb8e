"""`python -m tests.failovers`: strike so many leaders; 1 if anything was ordered, leased or charged wrongly.

Each round has a new market, server and fleet, which are judged at its end. Finished rounds are kept by what was
committed and by the way (`kept.py`), so a broken run goes on.

1. `--way killed`: a round plays every kind of write once; four rounds play every step of the journal with every kind.
2. The other ways strike a leader under load, at moments drawn from the number of the round.
3. `--way day` is no round: it plays a rehearsed day with a failover every ten minutes (`day.py`).
"""

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.failovers import judgement, kept, stages
from tests.failovers.rig import ROUNDS, Rig, Unprovoked, rig
from tests.support import engines, network

KILLED, DAY = "killed", "day"
DAY_HOURS = 24.0
BLOWS = 5
"""Of one round of the other ways."""


Round = dict[str, Any]
"""The gaps in seconds, the mistakes as sentences, and counts.

`alone` leaders died before another stood by, `kept` led on, `writing` had a write on its way or unsettled at the blow,
and `unjournaled` pauses and releases went on without the ledger. `unprovoked` is a case that the market did not allow.
"""


async def kill(number: int) -> tuple[Round, dict[str, Any]]:
    """Play one round of leaders that are killed. Return it and its evidence."""
    played: Round = {"gaps": [], "alone": 0, "wrong": [], "unprovoked": []}

    async def die(made: Rig) -> None:
        for step, kind in ROUNDS[number % len(ROUNDS)]:
            try:
                gap = await made.fail(step, kind)
            except Unprovoked as error:
                played["unprovoked"].append(str(error))
                return
            played["gaps"] += [] if gap is None else [gap]
            played["alone"] += gap is None
            print(f"round {number}: {step}:{kind}, gap {'-' if gap is None else f'{gap:.2f} s'}", flush=True)

    with engines.serving() as url, tempfile.TemporaryDirectory(prefix="gpubid-failovers-") as place:
        async with rig(Path(place), url, seed=number + 1) as made:
            evidence = await judged(made, played, die)
    print(f"round {number}: {played['wrong'] or 'right'}", *played["unprovoked"], flush=True)
    return played, evidence


async def play(way: str, number: int) -> tuple[Round, dict[str, Any]]:
    """Play one round of another way. Return it and its evidence."""
    played: Round = {"gaps": [], "kept": 0, "writing": 0, "wrong": []}
    with tempfile.TemporaryDirectory(prefix="gpubid-failovers-") as place:
        async with stages.WAYS[way](Path(place), number) as (made, once):
            evidence = await judged(made, played, lambda _: strike(played, number, once))
    print(f"round {number}: {played['wrong'] or 'right'}", flush=True)
    return played, evidence


async def strike(played: Round, number: int, once: stages.Once) -> None:
    """Strike the leaders of a round, one after another."""
    chance = random.Random(number)
    for _ in range(BLOWS):
        passed = await once(chance)
        gap = passed.gap_seconds
        played["gaps"] += [] if gap is None else [gap]
        played["kept"] += gap is None
        played["writing"] += passed.writing > 0
        played["wrong"] += passed.wrong
        told = "leads on" if gap is None else f"gap {gap:.2f} s"
        print(f"round {number}: {passed.kind} with {passed.writing} open, {told}", flush=True)


async def judged(made: Rig, played: Round, blows: Callable[[Rig], Awaitable[None]]) -> dict[str, Any]:
    """Await the blows and judge the round. A round that breaks off is wrong. Return the evidence."""
    try:
        await blows(made)
        evidence = await made.end()
    except (AssertionError, TimeoutError) as error:
        evidence = await made.evidence()
        played["wrong"].append(f"broke off: {type(error).__name__}: {str(error)[:2000]}")
    played["wrong"] += judgement.wrong(evidence)
    played["unjournaled"] = len(judgement.without_ledger(evidence))
    return evidence


def told(rounds: list[dict[str, Any]]) -> list[str]:
    """Return the figures and the mistakes of the rounds, as lines."""
    gaps = sorted(gap for each in rounds for gap in each["gaps"])
    line = f"{len(gaps)} failovers"
    if gaps:
        cuts = statistics.quantiles(gaps if len(gaps) > 1 else gaps * 2, n=100, method="inclusive")
        line += "; from the blow to the new leader's first cycle: "
        line += f"p50 {cuts[49]:.2f} s, p99 {cuts[98]:.2f} s, longest {gaps[-1]:.2f} s"
    sums = {name: sum(each.get(name, 0) for each in rounds) for name in ("alone", "kept", "writing", "unjournaled")}
    line += f"; {sums['alone']} more died before another stood by" if sums["alone"] else ""
    line += f"; {sums['kept']} more led on" if sums["kept"] else ""
    line += f"; {sums['writing']} blows met an open write" if sums["writing"] else ""
    line += f"; {sums['unjournaled']} pauses and releases went on without the ledger" if sums["unjournaled"] else ""
    lost = sum(len(each.get("unprovoked", ())) for each in rounds)
    line += f"; {lost} never came to their write" if lost else ""
    return [line, *(f"WRONG: {wrong}" for each in rounds for wrong in each["wrong"])]


def live() -> int:
    """Play a rehearsed day with failovers and one without, and print their figures."""
    # It needs the rehearsed world, which the rounds do without.
    from tests.failovers import day

    with tempfile.TemporaryDirectory(prefix="gpubid-failovers-") as place:
        lines, wrong = day.compared(Path(place), DAY_HOURS)
    print(*lines, *(f"WRONG: {each}" for each in wrong), sep="\n")
    return 1 if wrong else 0


def main() -> int:
    """Play rounds until there are enough failovers, and print their figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.failovers")
    parser.add_argument("--way", choices=(KILLED, *stages.WAYS, DAY), default=KILLED, help="what happens to the leader")
    parser.add_argument("--runs", type=int, default=200, help="failovers, and leaders that led on")
    asked = parser.parse_args()
    if asked.way == "cut" and not network.is_allowed():
        parser.error("--way cut makes network namespaces with `ip`: run it as root on Linux")
    if asked.way == DAY:
        return live()
    place = kept.file(asked.way)
    rounds = kept.rounds(place)
    while sum(len(each["gaps"]) + each.get("kept", 0) for each in rounds) < asked.runs:
        number = len(rounds)
        played, evidence = asyncio.run(kill(number) if asked.way == KILLED else play(asked.way, number))
        rounds.append(played)
        if kept.file(asked.way) == place:
            kept.keep(place, rounds, evidence)
    lines = told(rounds)
    print("\n".join(lines))
    return 1 if len(lines) > 1 else 0


if __name__ == "__main__":
    sys.exit(main())
