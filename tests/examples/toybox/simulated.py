"""The simulated Toybox: four machines with fixed prices in micro-dollars; an instance starts within a second."""

import dataclasses
import email.utils
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from agent.simulator.http_wire import Answer, Asked, decoded
from agent.simulator.simulated_market import Answering, Ask, DayCharge, PlainMarket
from agent.simulator.simulator_record import Beginning, SimulatorRecord
from agent.simulator.weather import StillLand, Weather

MACHINES = {f"toy-{number}": 200_000 + 10_000 * number for number in range(4)}
"""The floor of each machine; on demand it costs twice as much."""
DISK_PRICE = 100_000
START_SECONDS = 1.0
CLIMATES = {
    "toy_drought": """
        about = "half of the machines of Toybox; it is silent for a minute"
        [toybox]
        machines = 2
        [[weather]]
        fault = "server_error_before"
        market = "toybox"
        at_seconds = 1_200
        seconds = 60
    """
}


@dataclasses.dataclass(frozen=True)
class ToyTable:
    """What a climate may set of this market alone."""

    machines: int = len(MACHINES)


class Toybox(PlainMarket):
    """The market of one account."""

    def __init__(self, beginning: Beginning) -> None:
        self.key, self._clock, self._ids = beginning.key, beginning.clock, beginning.ids or str(beginning.seed)
        self.now, climate = beginning.start, beginning.climate
        self.weather = Weather(StillLand(self.now), beginning.seed, climate.weather, market="toybox")
        self.hosts = climate.table(ToyTable).machines
        self.calls: list[tuple[float, str, str, int]] = []
        self.answer: Answering = self._answer
        self._rented: dict[str, dict[str, Any]] = {}
        self._charges: list[DayCharge] = []

    def follow(self, now: float) -> None:
        """Charge what was used, and let instances start."""
        self.weather.advance_to(now)
        for row in self._rented.values():
            seconds = 0.0 if row["ended"] is not None else max(now - self.now, 0.0)
            is_on = row["state"] != "paused"
            dollars = seconds / 3600 * (row["disk_gb"] * DISK_PRICE / 720 + row["price"] * is_on) / 1e6
            row["charged"] += dollars
            self._charges.append(DayCharge(now, dollars, is_disk=not is_on))
            if row["state"] == "starting" and now - row["since"] >= START_SECONDS:
                row["state"] = "running"
        self.now = max(now, self.now)

    def truth(self) -> Mapping[str, Any]:
        """Return its true state."""
        rows = list(self._rented.values())
        return {"contracts": rows, "charged_total": sum(row["charged"] for row in rows)}

    def charges(self, since: float, until: float) -> Iterable[DayCharge]:
        """Return what was charged in a span."""
        return [charge for charge in self._charges if since <= charge.at <= until]

    def asks(self, gpus: int, disk_gb: float) -> Iterator[Ask]:
        """Yield what the free machines cost on demand."""
        for machine, floor in MACHINES.items():
            if gpus == 1 and machine in self._free():
                yield Ask("RTX 4090", 1, (2 * floor + disk_gb * DISK_PRICE / 720) / 1e6, 24_564, is_verified=True)

    async def close(self) -> None:
        """Close nothing."""

    async def _answer(self, asked: Asked) -> Answer:
        self.follow(self._clock.time())
        is_silent = "server_error_before" in self.weather.struck(asked.method, asked.path)
        status, body = (503, {"code": "silent"}) if is_silent else self._routed(asked)
        self.calls.append((self.now, asked.method, asked.path, status))
        headers = {"Content-Type": "application/json", "Date": email.utils.formatdate(self.now, usegmt=True)}
        return Answer(status, headers, json.dumps(body).encode())

    def _routed(self, asked: Asked) -> tuple[int, Any]:
        if asked.key != self.key:
            return 401, {"code": "bad_key"}
        body, _ = decoded(asked.body)
        match asked.method, asked.path.strip("/").split("/"):
            case "GET", ["account"]:
                return 200, {"id": "toy-account"}
            case "GET", ["rooms", _, "machines"]:
                return 200, {"machines": [_machine(name) for name in self._free()]}
            case "GET", ["instances"]:
                return 200, {"instances": list(self._live())}
            case "POST", ["instances"]:
                return self._rent(body)
            case method, ["instances", number] if (row := self._rented.get(number)) and row["ended"] is None:
                return 200, self._changed(method, row, body or {})
        return 404, {"code": "no_such_instance"}

    def _rent(self, body: Mapping[str, Any]) -> tuple[int, Any]:
        machine, bid = body["machine"], body["bid"]
        if machine not in self._free() or (bid is not None and bid < MACHINES[machine]):
            return 409, {"code": "machine_taken"}
        number = f"{self._ids.replace('/', '-')}-{len(self._rented)}"
        row = {"id": number, "label": body["label"], "machine": machine, "bid": bid, "disk_gb": body["disk_gb"]}
        row |= {"price": MACHINES[machine] * 2 if bid is None else bid, "disk_price": DISK_PRICE, "charged": 0.0}
        row |= {"state": "starting", "since": self.now, "created": self.now, "ended": None}
        self._rented[number] = row | {"gpu": "RTX 4090", "gpus": 1, "is_bid": bid is not None}
        return 200, {"id": number}

    def _changed(self, method: str, row: dict[str, Any], body: Mapping[str, Any]) -> Any:
        if method == "DELETE":
            row["ended"] = self.now
        elif method == "PATCH":
            row |= {**body, "since": self.now} | ({"price": body["bid"]} if "bid" in body else {})
        return row

    def _live(self) -> Collection[dict[str, Any]]:
        return [row for row in self._rented.values() if row["ended"] is None]

    def _free(self) -> Collection[str]:
        taken = {row["machine"] for row in self._live() if row["state"] != "paused"}
        return [name for name in list(MACHINES)[: self.hosts] if name not in taken]


def _machine(name: str) -> dict[str, Any]:
    floor = MACHINES[name]
    prices = {"floor": floor, "ask": 2 * floor, "disk_price": DISK_PRICE}
    return {"id": name, "gpu": "RTX 4090", "gpus": 1, "vram_mb": 24_564, **prices}


RECORD = SimulatorRecord("toybox", Toybox, climate_table=ToyTable, climates=CLIMATES)
