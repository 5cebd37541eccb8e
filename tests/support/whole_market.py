"""The whole simulated market in one answer, which the vendor never sends."""

import msgspec

from agent.simulator.vast.http import offer_rows
from agent.simulator.vast.http.offer_rows import OfferRows
from agent.simulator.vast.world import World


def encoded(world: World, kind: str = offer_rows.BID) -> bytes:
    """Return the answer to a search with every offer and all its fields."""
    rows = OfferRows(world)
    offers = []
    for slice_ in world.listed():
        prices = rows.prices(slice_, kind, offer_rows.DEFAULT_STORAGE_GB)
        if prices is not None:
            offers.append(rows.full(slice_, prices))
    return msgspec.json.encode({"success": True, "offers": offers})
