"""Shared by this market's endpoints: the world, its weather, the account's key, and a small memory."""

import dataclasses

from agent.simulator.faults import Fault
from agent.simulator.instances.open_ports import Doors
from agent.simulator.mithril.http.calls import Call
from agent.simulator.mithril.model import Bid, Refused
from agent.simulator.mithril.world import World
from agent.simulator.simulator_record import DEFAULT_KEY
from agent.simulator.weather import Weather

PREFIX = "fkey_"
"""The beginning of every key of this market."""


class Surface:
    """This market's surface. Endpoints are functions of it and a call."""

    def __init__(self, world: World, weather: Weather, key: str = DEFAULT_KEY) -> None:
        """Make the surface of a world. It takes `key` with the market's prefix and, from our own tools, without."""
        self.world = world
        self.weather = weather
        self.key = PREFIX + key.removeprefix(PREFIX)
        self.doors = Doors(self._place)
        self._is_used = False
        self._frozen: dict[Fault, list[Bid]] = {}
        weather.on_begin = self._freeze

    def is_known(self, key: str | None) -> bool:
        """Return whether a key is the account's."""
        return key is not None and PREFIX + key.removeprefix(PREFIX) == self.key

    def advance_to(self, now: float) -> None:
        """Move the market and its open ports."""
        self._is_used = True
        self.weather.advance_to(now)
        self.doors.attend(self.world.live_contracts(), self.world.now)

    def follow(self, now: float) -> None:
        """Move the market along once somebody has asked it something; nobody sees whether it moves before that."""
        if self._is_used:
            self.advance_to(now)

    def project(self, call: Call, project: str) -> None:
        """Raise Refused unless the project is the account's."""
        if project != self.world.project or "wrong_account" in call.struck:
            raise Refused(404, "Project not found")

    def listed(self, call: Call) -> list[Bid]:
        """Return the bids that a list shows this caller, which weather may falsify."""
        struck = call.struck
        if "wrong_account" in struck or "empty_list" in struck:
            return []
        if (fault := struck.get("stale_list")) is not None:
            return self._frozen.get(fault, [])
        bids = list(self.world.bids.values())
        if (fault := struck.get("partial_list")) is not None:
            return bids[: int(len(bids) * fault.number("keep", 0.5))]
        return bids

    def bid(self, call: Call, fid: str) -> Bid:
        """Return one of the caller's bids, or raise Refused."""
        if "wrong_account" in call.struck:
            raise Refused(404, "Bid not found")
        return self.world.bid(fid)

    def suffix(self, call: Call) -> str:
        """Return the ending of another account's ids."""
        return "x" if "wrong_account" in call.struck else ""

    def _place(self, number: int, port: int) -> tuple[str, int]:
        """Return where a port of a bid's first machine is reached."""
        bid = self.world.numbered(number)
        return (bid.live_vms[0].address, port)

    def _freeze(self, fault: Fault) -> None:
        if fault.name == "stale_list":
            self._frozen[fault] = [
                dataclasses.replace(bid, vms=[dataclasses.replace(vm, statuses=list(vm.statuses)) for vm in bid.vms])
                for bid in self.world.bids.values()
            ]
