"""An embedded market goes on by the clock while no process runs it."""

import json
from pathlib import Path
from typing import Any

import pytest
from multidict import CIMultiDict

from agent.simulator.http_wire import Asked
from agent.simulator.mithril import side as mithril_side
from agent.simulator.saved_market import Saved
from agent.simulator.simulated_clock import ScaledClock
from agent.simulator.vast import side as vast_side
from agent.simulator.vast.http import call_gate
from tests.support.market import START, STILL

HOUR = 3600.0


async def opened(file: Path, clock: ScaledClock) -> Saved:
    saved = Saved(file, STILL, 7, clock, str, keeps=True)
    await saved.open()
    return saved


def vast(saved: Saved) -> vast_side.Side:
    side = saved.simulator.sides["vast"]
    assert isinstance(side, vast_side.Side)
    return side


def mithril(saved: Saved) -> mithril_side.Side:
    side = saved.simulator.sides["mithril"]
    assert isinstance(side, mithril_side.Side)
    return side


async def call(saved: Saved, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    headers = CIMultiDict({"Authorization": f"Bearer {call_gate.DEFAULT_KEY}", "Content-Type": "application/json"})
    reply = await vast(saved).api.answer(Asked(method, path, {}, headers, json.dumps(body).encode()))
    return dict(json.loads(reply.body))


async def test_what_was_rented_runs_and_bills_on_while_the_daemon_is_down(tmp_path: Path) -> None:
    file, clock = tmp_path / "market", ScaledClock(START, speed=0.0)
    before = await opened(file, clock)
    assert before.is_anew
    rows = (await call(before, "POST", "/api/v0/bundles/", {"type": "on-demand"}))["offers"]
    terms = {"client_id": "me", "image": "ubuntu:22.04", "disk": 16.0, "price": None, "label": "ours"}
    rented = (await call(before, "PUT", f"/api/v0/asks/{rows[0]['id']}/", terms))["new_contract"]
    clock.advance(HOUR)
    before.simulator.advance_to(clock.time())
    then = vast(before).world.charged_total()

    clock.advance(10 * HOUR)
    after = await opened(file, clock)
    assert not after.is_anew
    after.simulator.advance_to(clock.time())
    (contract,) = vast(after).world.live_contracts()
    assert (contract.contract_id, contract.label, contract.holds_gpu) == (rented, "ours", True)
    rate = contract.locked_ask + vast(after).world.disk_rate(contract)
    billed = vast(after).world.charged_total() - then
    assert 0.99 * 10 * rate <= billed <= 1.01 * 10 * rate


async def test_a_bid_on_mithril_runs_on_while_the_daemon_is_down(tmp_path: Path) -> None:
    file, clock = tmp_path / "market", ScaledClock(START, speed=0.0)
    before = await opened(file, clock)
    body = {
        "project": mithril(before).world.project,
        "region": "us-central3-a",
        "instance_type": "it_RrgkIZz6c9BZu5gi",
        "limit_price": "$2.00",
        "instance_quantity": 1,
        "name": "ours",
        "launch_specification": {"volumes": [], "ssh_keys": []},
    }
    headers = CIMultiDict({"Authorization": f"Bearer {mithril(before).key}"})
    asked = Asked("POST", "/v2/spot/bids", {}, headers, json.dumps(body).encode())
    placed = json.loads((await mithril(before).api.answer(asked)).body)["fid"]

    clock.advance(10 * HOUR)
    after = await opened(file, clock)
    assert not after.is_anew
    world = mithril(after).world
    world.advance_to(clock.time())
    (bid,) = world.live_contracts()
    assert (bid.fid, bid.label, bid.status.value, bid.rate) == (placed, "ours", "Allocated", 1.0)
    assert world.charged_total() == pytest.approx(10.0 - 120.0 / HOUR)

    anew = await opened(tmp_path / "other", clock)
    asked = Asked("POST", "/v2/spot/bids", {}, headers, json.dumps(body).encode())
    assert json.loads((await mithril(anew).api.answer(asked)).body)["fid"] != placed


async def test_questions_that_are_posts_are_not_kept_and_a_run_lives_on(tmp_path: Path) -> None:
    file, clock = tmp_path / "market", ScaledClock(START, speed=0.0)

    async def ask(saved: Saved, path: str, body: dict[str, Any]) -> Any:
        headers = CIMultiDict({"Authorization": f"Bearer {call_gate.DEFAULT_KEY}", "Content-Type": "application/json"})
        reply = await saved.simulator.sides["dstack"].answer(
            Asked("POST", path, {}, headers, json.dumps(body).encode())
        )
        return json.loads(reply.body)

    before = await opened(file, clock)
    kept = file.stat().st_size
    for path in ("/api/projects/main/get", "/api/runs/list", "/api/instances/list"):
        await ask(before, path, {})
    assert file.stat().st_size == kept
    order = {"type": "task", "image": "ubuntu", "fleets": ["gpubid"], "resources": {"gpu": {"count": {"min": 1}}}}
    plan = {"run_spec": {"run_name": "one", "configuration": order}, "current_resource": None}
    made = await ask(before, "/api/project/main/runs/apply", {"plan": plan, "force": False})
    clock.advance(HOUR)
    after = await opened(file, clock)
    (run,) = await ask(after, "/api/runs/list", {})
    assert (run["id"], run["status"], after.is_anew) == (made["id"], "running", False)
