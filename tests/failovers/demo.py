"""`python -m tests.failovers.demo`: a server, a market and two daemons here; two leaders die while they rent."""

import asyncio
import sys
import tempfile
from pathlib import Path

from tests.failovers import judgement
from tests.failovers.rig import SPEED, Rig, rig
from tests.support import engines

DEATHS = {
    "sent": "just after it wrote down that it sends a rent: no request has left",
    "replied": "just after the market answered a rent: nothing of the answer is written down",
}


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


async def show(made: Rig) -> None:
    """Print what `gpubid fleet` says on both boxes."""
    for number, name in enumerate("ab"):
        ran = await made.pair.gpubid(number, "fleet")
        lines = [line for line in (ran.out + ran.err).splitlines() if " leads " in line or "running" in line]
        for line in lines:
            say(f"  box {name}: {line.strip()[:150]}")


async def play(place: Path, url: str) -> int:
    """Play the demonstration; return 1 if anything was ordered, leased or charged wrongly."""
    say(f"Starting a market, a ledger on PostgreSQL and the first daemon. Their clocks run {SPEED:.0f} times as fast.")
    async with rig(place, url) as made:
        say("Two workloads run:")
        await show(made)
        for step, when in DEATHS.items():
            say(f"\nThe other box takes over the lead. Then kill -9 of the leader, {when}.")
            gap = await made.fail(step, "rent")
            led = "No other one stood by yet." if gap is None else f"{gap:.1f} s after the kill the standby led."
            say(f"{led} The last rents:")
            for intent, state, outcome in made.rents():
                say(f"  intent {intent}: {state} ({outcome})")
            await show(made)
        requests, found = await made.requests(), judgement.wrong(await made.end())
    say(f"\nThe market got {requests} requests to rent. " + ("Each has an intent of its own." if not found else ""))
    for line in found:
        say(f"WRONG: {line}")
    if not found:
        say("One lease a slot, and the ledger's spend is the market's.")
    return 1 if found else 0


def main() -> int:
    """Start everything in a folder that is removed at the end."""
    with engines.serving() as url, tempfile.TemporaryDirectory(prefix="gpubid-ha-demo-") as place:
        return asyncio.run(play(Path(place), url))


if __name__ == "__main__":
    sys.exit(main())
