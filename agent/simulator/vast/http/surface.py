"""Shared by the endpoints: the world, the weather, the limits of callers, and a small memory of the surface."""

import hashlib
from typing import Any

from agent.simulator import api_calls
from agent.simulator.api_calls import Reply
from agent.simulator.faults import Fault
from agent.simulator.market_model import Refusal
from agent.simulator.vast.calls import Call
from agent.simulator.vast.http.call_gate import Gate
from agent.simulator.vast.http.records import Records
from agent.simulator.vast.http.search import Search
from agent.simulator.vast.http.signed_deliveries import Deliveries
from agent.simulator.vast.model import Contract
from agent.simulator.vast.world import World
from agent.simulator.weather import Weather

MOST_FILES = 200


class Surface:
    """One market's surface. Endpoints are functions of it and a call."""

    def __init__(self, world: World, weather: Weather, gate: Gate, seed: int) -> None:
        """Make the surface of a world."""
        self.world = world
        self.weather = weather
        self.gate = gate
        self.records = Records(world)
        self.search = Search(world, gate, seed)
        self.opened_at = world.now
        self.opening_credit = world.credit
        self.seen_through = 0.0
        self.last_seen: float | None = None
        self.ssh_keys: dict[int, dict[str, Any]] = {}
        self.attached_keys: dict[int, dict[int, str]] = {}
        self.webhooks: dict[int, dict[str, Any]] = {}
        self.deliveries = Deliveries(world, self.webhooks)
        self.files: dict[str, bytes] = {}
        self._frozen: dict[Fault, list[dict[str, Any]]] = {}
        weather.on_begin = self._freeze

    def contracts(self, call: Call) -> list[Contract]:
        """Return the contracts that the caller's account holds."""
        return [] if "wrong_account" in call.struck else self.world.live_contracts()

    def contract(self, call: Call, contract_id: int) -> Contract:
        """Return one of them or raise Refusal."""
        if "wrong_account" in call.struck:
            raise Refusal(Refusal.NO_SUCH_CONTRACT, "It belongs to another account.")
        return self.world.contract(contract_id)

    def account_id(self, call: Call) -> int:
        """Return the id of the account that the key belongs to."""
        return self.world.account_id + (1 if "wrong_account" in call.struck else 0)

    def frozen(self, fault: Fault) -> list[dict[str, Any]]:
        """Return the records as they were when a stale_list began."""
        return self._frozen.get(fault, [])

    def publish(self, call: Call, text: str, folder: str) -> str:
        """Publish a text for everybody and return its address."""
        name = hashlib.sha256(f"{folder}/{call.number}".encode()).hexdigest()[:32]
        path = f"/s3/{folder}/{name}.log"
        self.files[path] = text.encode()
        while len(self.files) > MOST_FILES:
            del self.files[next(iter(self.files))]
        return call.base_url + path

    def file(self, path: str) -> Reply:
        """Answer a published text."""
        body = self.files.get(path)
        return api_calls.plain(404, "NoSuchKey") if body is None else Reply(body, 200, api_calls.TEXT)

    def _freeze(self, fault: Fault) -> None:
        if fault.name == "stale_list":
            self._frozen[fault] = [self.records.record(contract) for contract in self.world.live_contracts()]
