"""Shared steps of tests of contracts over HTTP: rent one, lose one, and read its record."""

from typing import Any

from tests.support.market import Market

DISPLACED = ("exited", "stopped", "stopped", "stopped")
RUNNING = ("running", "running", "running", "running")


async def single(market: Market, **filters: Any) -> dict[str, Any]:
    """Return the cheapest host with exactly one offer of one GPU."""
    return await market.cheapest(gpu_frac={"eq": 1.0}, num_gpus={"eq": 1}, **filters)


def raised(floor: float, factor: float) -> float:
    return round(floor * factor + 0.00005, 4)


async def evicted(market: Market, *, on_demand: bool) -> tuple[dict[str, Any], dict[str, Any], float, int]:
    """Rent, run, and let a rival take the GPUs. Return the record, the notice, the bid and the rival."""
    offer = await single(market)
    bid = raised(offer["min_bid"], 1.2)
    made = await market.rented(offer["id"], bid)
    await market.running(made)
    rival: dict[str, Any] = {"machine_id": offer["machine_id"]}
    rival |= {"on_demand": True} if on_demand else {"gpus": 1, "bid": round(bid * 2, 2)}
    number = (await market.control("POST", "/rivals", rival)).body["id"]
    await market.advance(120.0)
    notices = (await market.call("GET", "/notifications/inbox/")).body["notifications"]
    (notice,) = [row for row in notices if row["notif_type"] == "outbid"]
    return await market.instance(made), notice, bid, number
