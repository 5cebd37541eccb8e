"""What others own in our account: what a person rents by hand, and labels of our fleet that no ledger here wrote."""

import random

from agent.simulator.vast.model import RentTerms
from tests.disasters.auctions import auction_deeds
from tests.disasters.auctions.auction_draw import MARKET
from tests.disasters.stage import Stage
from tests.support.scene import FLEET


class Strangers:
    """Rents by hand, and knows the ids of it."""

    def __init__(self, stage: Stage, markets: tuple[str, ...]) -> None:
        self._stage = stage
        self._markets = markets
        self._ids: dict[str, str] = {}

    def id(self, market: str) -> str:
        """Return the id of an instance that somebody rented by hand, or of none."""
        if market not in self._ids:
            self.rent("somebody else's", MARKET if market == MARKET else "vast")
        return self._ids.get(market, "")

    def rent(self, label: str | None, market: str = "vast") -> None:
        """Let a person rent an instance in the same account."""
        if market == MARKET and market in self._markets:
            self._ids[market] = auction_deeds.by_hand(self._stage.simulator.mithril.world)
        world = self._stage.simulator.world
        held = {contract.slice.machine_id for contract in world.live_contracts()}
        for slice_ in world.listed() if market == "vast" and "vast" in self._markets else ():
            if slice_.num_gpus == 1 and slice_.machine_id not in held and world.true_floor(slice_) is not None:
                made = world.create(slice_.offer_id, RentTerms(20.0, "alpine", label), bid=world.ask(slice_))
                self._ids["vast"] = str(made.contract_id)
                return


def label(workload: str, fate: random.Random) -> str:
    """Return a label of our fleet that this ledger never wrote."""
    return f"gpubid:{FLEET}:{workload}:0:{fate.getrandbits(64):016x}"
