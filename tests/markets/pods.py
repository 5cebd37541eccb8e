"""RunPod before a bare server: the answers of a small account there, and a market of ours that asks it."""

import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from agent.clock import SteppedClock
from agent.domain import money
from agent.domain.market.tenure import Tenure
from agent.markets.port import Terms
from agent.markets.runpod import market
from tests.markets.scene import KEY, OFFER
from tests.markets.wire import Answers, Says, Seen, Wire, serving

PAYLOADS = Path(__file__).parent / "payloads" / "runpod"
POD = "k3v9q2m7x1ab"
HOST = "pool/SECURE/NVIDIA_GeForce_RTX_4090/EU-RO-1"
OFFERED = msgspec.structs.replace(
    OFFER, market="runpod", offer_id=f"{HOST}#1", host_id=HOST, ask=money.per_hour("0.66"), floor=None
)
ASK = Terms(Tenure.ON_DEMAND, None, 40.0, "ubuntu:22.04")


def payload(name: str) -> Any:
    return json.loads((PAYLOADS / f"{name}.json").read_text())


def problem(status: int, detail: str, **headers: str) -> Says:
    body = {"title": "A title", "status": status, "detail": detail}
    return Says(body, status, {"Content-Type": "application/problem+json", **headers})


def pod(**changes: Any) -> dict[str, Any]:
    return payload("pods")["pods"][0] | changes


def myself(**changes: Any) -> Says:
    return Says({"data": {"myself": {"id": "user_1", "clientBalance": 12.5, **changes}}})


def account(seen: Seen) -> Says:
    """Answer as an account with the pods, prices and bill of the payloads."""
    if seen.path == "/graphql":
        return _graphql(seen)
    if seen.path.startswith("/v2/catalog/gpus"):
        return Says(payload("catalogue"))
    if seen.path == "/v2/billing/pods":
        return Says(payload("bill"))
    if seen.path == "/v2/pods":
        return Says(pod(status="PROVISIONING", runtime={}), 201) if seen.method == "POST" else Says(payload("pods"))
    if seen.path == f"/v2/pods/{POD}":
        return Says(pod())
    if seen.path == f"/v2/pods/{POD}/action":
        return Says(b"", 204) if seen.json["action"] == "terminate" else Says(pod())
    return problem(404, "pod not found")


def _graphql(seen: Seen) -> Says:
    query = seen.json["query"]
    if "gpuTypes" in query:
        count = seen.json["variables"]["input"]["gpuCount"]
        price = {"minimumBidPrice": 0.35 * count, "uninterruptablePrice": 0.66 * count}
        dear = {"minimumBidPrice": 2.94 * count, "uninterruptablePrice": 2.94 * count}
        types = [("NVIDIA GeForce RTX 4090", price), ("NVIDIA H100 80GB HBM3", dear), ("NVIDIA A40", None)]
        return Says({"data": {"gpuTypes": [{"id": name, "lowestPrice": told} for name, told in types]}})
    if "podRentInterruptable" in query:
        return Says({"data": {"podRentInterruptable": {"id": POD}}})
    if "podBidResume" in query:
        return Says({"data": {"podBidResume": {"id": POD, "desiredStatus": "RUNNING"}}})
    return replace(myself(), headers={"Date": "Thu, 05 Nov 2026 22:00:00 GMT"})


def graph_error(message: str, code: str = "RUNPOD", status: int = 200) -> Says:
    return Says({"errors": [{"message": message, "extensions": {"code": code}}], "data": None}, status)


def listing(*rows: dict[str, Any], told: Sequence[dict[str, Any]] = ()) -> Answers:
    """Answer as that account with these pods, and with these rows of GraphQL."""

    def answers(seen: Seen) -> Says:
        if seen.path == "/graphql" and "gpuTypes" not in seen.json["query"] and "mutation" not in seen.json["query"]:
            return myself(pods=list(told))
        return Says({"pods": list(rows)}) if seen.path == "/v2/pods" and seen.method == "GET" else account(seen)

    return answers


def without_graphql(refusal: Says) -> Answers:
    """Answer as that account, but every GraphQL question so."""
    return lambda seen: refusal if seen.path == "/graphql" else account(seen)


@contextlib.asynccontextmanager
async def runpod_saying(
    answers: Answers | Says, clock: SteppedClock, **options: Any
) -> AsyncIterator[tuple[market.RunPodMarket, Wire]]:
    async with serving(answers) as wire:
        ours = market.connect(wire.url, lambda: KEY, clock, lambda: 0.5, **options)
        try:
            yield ours, wire
        finally:
            await ours.close()
