"""Prints what decoding the whole market and one listing cost: `python -m tests.markets.measure`. Asserts nothing."""

import asyncio
import json
import multiprocessing
import multiprocessing.connection
import random
import time
from datetime import UTC, datetime
from typing import Any

from agent.clock import SteppedClock
from agent.markets.vast import parse
from tests.markets.scene import vast_at
from tests.markets.wire import Says, payload, serving

ROWS = 13_000
CALLS = 1_000
_WORDS = "abcdefghijklmnopqrstuvwxyz"


def wide_row(number: int, rng: random.Random) -> dict[str, Any]:
    """A row of the recorded width: about ninety fields and 2.4 KB."""
    row = payload("offers_on_demand")["offers"][0] | {
        "id": 31_000_000 + number,
        "ask_contract_id": 31_000_000 + number,
        "machine_id": rng.randrange(7_400),
        "dph_base": rng.random(),
        "min_bid": rng.random(),
        "end_date": 1_796_000_000.0 + rng.randrange(7_400) * 60,
    }
    name = 0
    while len(json.dumps(row)) < 2_400:
        row[f"decorative_{_WORDS[name % 26]}_{name}"] = [rng.random(), None, "AMD EPYC 7642 48-Core"][name % 3]
        name += 1
    return row


def decode() -> None:
    rng = random.Random(1)
    raw = json.dumps({"offers": [wide_row(number, rng) for number in range(ROWS)]}).encode()
    now = datetime(2026, 11, 5, tzinfo=UTC)
    print(f"{ROWS} rows, {len(raw) / 1e6:.1f} MB")
    for _ in range(5):
        began = time.perf_counter()
        plain = json.loads(raw)
        middle = time.perf_counter()
        del plain
        after = time.perf_counter()
        found = parse.offers(raw, now)
        ended = time.perf_counter()
        ours, theirs = ended - after, middle - began
        share = f"{ours / theirs:.0%} of it for {len(found)} offers"
        print(f"json.loads {theirs * 1e3:4.0f} ms   parse.offers {ours * 1e3:4.0f} ms   {share}")


def _serve(pipe: "multiprocessing.connection.Connection[str, str]") -> None:
    async def run() -> None:
        async with serving(Says(payload("instances"))) as wire:
            pipe.send(wire.url)
            await asyncio.get_running_loop().run_in_executor(None, pipe.recv)

    asyncio.run(run())


async def _list(url: str) -> float:
    clock = SteppedClock(datetime(2026, 11, 5, tzinfo=UTC))
    async with vast_at(url, clock) as vast:
        await vast.instances()
        began = time.process_time()
        for _ in range(CALLS):
            await vast.instances()
        return (time.process_time() - began) / CALLS


def listing() -> None:
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,))
    server.start()
    seconds = asyncio.run(_list(ours.recv()))
    ours.send("end")
    server.join()
    print(f"instances(), three rows, over TCP to another process: {seconds * 1e3:.2f} ms of CPU on our side")


if __name__ == "__main__":
    decode()
    listing()
