"""Shared by this market's endpoints: the world, the limits of callers, and a small memory."""

import asyncio
import dataclasses
import hashlib
from collections.abc import Callable, Hashable
from typing import Any

from agent.simulator.api_calls import Reply
from agent.simulator.faults import Fault
from agent.simulator.instances.open_ports import Doors
from agent.simulator.runpod.http.calls import Call
from agent.simulator.runpod.http.rate_windows import Limits
from agent.simulator.runpod.model import Pod, Refused, Terms
from agent.simulator.runpod.world import NO_SPOT_STOCK, NO_STOCK, World
from agent.simulator.simulator_record import DEFAULT_KEY
from agent.simulator.weather import Weather

MOST_KEPT = 64
"""How many answers about offers are kept at most."""


class Surface:
    """This market's surface. Endpoints are functions of it and a call."""

    def __init__(self, world: World, weather: Weather, limits: Limits | None = None, key: str = DEFAULT_KEY) -> None:
        """Make the surface of a world, with one key."""
        self.world = world
        self.weather = weather
        self.limits = limits if limits is not None else Limits()
        self.key = key
        self.doors = Doors()
        self.public_key = ""
        self._moved = asyncio.Event()
        self._frozen: dict[Fault, list[Pod]] = {}
        weather.on_begin = self._freeze
        self._offered: Hashable = None
        self._catalogue: dict[Hashable, Reply] = {}

    def advance_to(self, now: float) -> None:
        """Move the market and its open ports, and wake the readers of logs."""
        self.weather.advance_to(now)
        self.doors.attend(self.world.live_contracts(), self.world.now)
        self._moved.set()
        self._moved = asyncio.Event()

    def pod_key(self, pod_id: str) -> str:
        """Return the key with which the container of a pod may show, start, stop or end that pod."""
        return hashlib.sha256(f"{self.key}/{pod_id}".encode()).hexdigest()

    async def moved(self) -> None:
        """Wait until the market moves again."""
        await self._moved.wait()

    def listed(self, call: Call) -> list[Pod]:
        """Return the pods that a list shows this caller, which weather may falsify."""
        struck = call.struck
        if "wrong_account" in struck or "empty_list" in struck:
            return []
        if (fault := struck.get("stale_list")) is not None:
            return self._frozen.get(fault, [])
        pods = self.world.live_contracts()
        if (fault := struck.get("partial_list")) is not None:
            return pods[: int(len(pods) * fault.number("keep", 0.5))]
        return pods

    def pod(self, call: Call, pod_id: str) -> Pod:
        """Return one of the caller's pods or raise Refused."""
        if "wrong_account" in call.struck:
            raise Refused(Refused.NO_SUCH_POD, "pod not found")
        return self.world.pod(pod_id)

    def rent(self, call: Call, terms: Terms, bid: float | None = None) -> Pod:
        """Make a pod or raise Refused; the weather may have sold out a type that the catalogue lists."""
        if "sold_out" in call.struck:
            raise Refused(Refused.NO_STOCK, NO_STOCK if bid is None else NO_SPOT_STOCK)
        return self.world.rent(terms, bid)

    def catalogue(self, question: Hashable, answer: Callable[[], Reply]) -> Reply:
        """Return the answer to a question about offers; it is made again only when the offers have changed."""
        offered = self.world.offered
        if offered != self._offered or len(self._catalogue) >= MOST_KEPT:
            self._offered = offered
            self._catalogue.clear()
        kept = self._catalogue.get(question)
        if kept is None:
            kept = self._catalogue[question] = answer()
        return Reply(kept.body, kept.status, kept.content_type)

    def account(self, call: Call) -> str:
        """Return the id of the account that the key belongs to."""
        return self.world.account_id + ("x" if "wrong_account" in call.struck else "")

    def reach(self, pod: Pod) -> list[dict[str, Any]]:
        """Return the address of each exposed port of a running pod: number, kind, public number and address."""
        doors = self.doors.ports(pod) if pod.host.has_public_ip else {}
        found: list[dict[str, Any]] = []
        for number, kind in pod.exposed():
            if kind == "http":
                found.append({"private": number, "type": kind, "public": 60_000 + number % 5_000, "ip": "100.65.0.101"})
            elif number in doors:
                found.append({"private": number, "type": kind, "public": doors[number], "ip": "127.0.0.1"})
        return found

    def _freeze(self, fault: Fault) -> None:
        if fault.name == "stale_list":
            self._frozen[fault] = [dataclasses.replace(pod) for pod in self.world.live_contracts()]
