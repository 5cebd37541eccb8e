"""`python -m tests.failovers`: kill so many leaders; 1 if anything was ordered, leased or charged wrongly.

Each round plays every kind of write once, over a new market, server and fleet, which are judged at its end; four rounds
play every step of the journal with every kind. Finished rounds are kept by the committed tree, so a broken run goes on.
"""

import argparse
import asyncio
import contextlib
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.failovers.rig import ROUNDS, Unprovoked, rig
from tests.support import committed, engines, postgres

KEPT = Path.home() / ".cache/gpubid/failovers"
ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def server() -> Iterator[str]:
    """Start a server, and yield the address of a role that is no superuser."""
    import psycopg

    with postgres.running() as url:
        whole = url.replace("+psycopg", "")
        with psycopg.connect(whole, autocommit=True) as raw:
            raw.execute(f"CREATE ROLE {engines.ROLE} LOGIN PASSWORD '{postgres.PASSWORD}'".encode())
            raw.execute(f"GRANT CREATE ON DATABASE postgres TO {engines.ROLE}".encode())
        yield whole.replace("lab:", f"{engines.ROLE}:")


async def play(number: int) -> dict[str, Any]:
    """Play one round, and return its gaps and its mistakes.

    `alone` counts the leaders that died before another stood by; `unprovoked` is a case that the market did not allow.
    """
    played: dict[str, Any] = {"gaps": [], "alone": 0, "wrong": [], "unprovoked": []}
    with server() as url, tempfile.TemporaryDirectory(prefix="gpubid-failovers-") as place:
        async with rig(Path(place), url, seed=number + 1) as made:
            for step, kind in ROUNDS[number % len(ROUNDS)]:
                try:
                    gap = await made.fail(step, kind)
                except Unprovoked as error:
                    played["unprovoked"].append(str(error))
                    break
                played["gaps"] += [] if gap is None else [gap]
                played["alone"] += gap is None
                print(f"round {number}: {step}:{kind}, gap {'-' if gap is None else f'{gap:.2f} s'}", flush=True)
            played["wrong"] = await made.end()
    print(f"round {number}: {played['wrong'] or 'right'}", *played["unprovoked"], flush=True)
    return played


def told(rounds: list[dict[str, Any]]) -> list[str]:
    """Return the figures and the mistakes of the rounds, as lines."""
    gaps = sorted(gap for each in rounds for gap in each["gaps"])
    cuts = statistics.quantiles(gaps, n=100, method="inclusive")
    lines = [f"{len(gaps)} failovers; from the kill to the new leader's first cycle: "]
    lines[0] += f"p50 {cuts[49]:.2f} s, p99 {cuts[98]:.2f} s, longest {gaps[-1]:.2f} s"
    lines[0] += f"; {sum(each['alone'] for each in rounds)} more died before another stood by"
    lines[0] += f"; {sum(len(each['unprovoked']) for each in rounds)} never came to their write"
    return [*lines, *(f"WRONG: {line}" for each in rounds for line in each["wrong"])]


def main() -> int:
    """Play rounds until there are enough failovers, and print their figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.failovers")
    parser.add_argument("--runs", type=int, default=200, help="failovers")
    asked = parser.parse_args()
    name = committed.digest(ROOT)
    file = KEPT / f"{name}.json"
    rounds: list[dict[str, Any]] = json.loads(file.read_text()) if name and file.exists() else []
    while sum(len(each["gaps"]) for each in rounds) < asked.runs:
        rounds.append(asyncio.run(play(len(rounds))))
        if name:
            KEPT.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(rounds))
    lines = told(rounds)
    print("\n".join(lines))
    return 1 if len(lines) > 1 else 0


if __name__ == "__main__":
    sys.exit(main())
