"""A real dstack server without a cloud: what it says to our adapter, and its own document, held against ours."""

import dataclasses
import json
import re
import subprocess
import time
import tomllib
from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml  # type: ignore[import-untyped]

from agent.clock import SystemClock
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.tenure import Tenure
from agent.markets import market_errors
from agent.markets.dstack import fleets, market, names, orders
from agent.markets.http_exchange import HttpExchange, Reply, Request
from agent.markets.port import Page, Terms
from agent.simulator.dstack import interpolation
from tests.markets.bench import DISK_GB
from tests.markets.bench_dstack import dstack_bench
from tests.markets.scene import OFFER, asked
from tests.support import dstack_server
from tests.support.dstack_server import Server

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.long(300),
    pytest.mark.skipif(not dstack_server.PROGRAM.exists(), reason=f"no dstack server is here: {dstack_server.WHERE}"),
]
LABEL = "gpubid:0123456789ab:train:0:{:016x}"
FLEET = "gpubid"
OFFERED = msgspec.structs.replace(
    OFFER, market="dstack", offer_id="aws/us-east-1/g5.xlarge", host_id="pool/aws/us-east-1/g5.xlarge", floor=None
)
ORDER = Terms(Tenure.ON_DEMAND, None, 16.0, "ubuntu:22.04", command="sleep 5")
CLOUDS = Path(__file__).parents[3] / "deploy" / "handbook" / "clouds.toml"
MADE = {"type": "fleet", "name": FLEET, "nodes": {"min": 0, "max": 20}, "idle_duration": 0, "spot_policy": "auto"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with dstack_server.running(tmp_path_factory.mktemp("dstack")) as running:
        make_fleet(running)
        yield running


def make_fleet(server: Server) -> None:
    spec = {"configuration": MADE, "profile": {"name": "default"}, "autocreated": False}
    plan = {"spec": spec, "current_resource": None}
    status, said = server.post("/api/project/main/fleets/apply", {"plan": plan, "force": False})
    assert status == 200, said


def connected(server: Server, **changes: Any) -> market.DstackMarket:
    plain = {"project": "main", "fleet": FLEET, "bounds": orders.Bounds(("aws",))}
    token = changes.pop("token", dstack_server.TOKEN)
    through = changes.pop("through", None)
    clock = changes.pop("clock", None) or SystemClock()
    terrain = market.Terrain(**plain | changes)
    return market.connect(server.url, lambda: token, clock, lambda: 0.5, terrain=terrain, through=through)


@pytest.fixture
async def ours(server: Server) -> AsyncIterator[market.DstackMarket]:
    made = connected(server)
    yield made
    await made.close()


async def test_a_wrong_token_and_an_unknown_project_are_told_apart(server: Server) -> None:
    stranger, lost = connected(server, token="other"), connected(server, project="other")
    with pytest.raises(market_errors.Unauthorized, match="token"):
        await stranger.account()
    with pytest.raises(market_errors.Unavailable, match=r"\[markets.dstack\] project"):
        await lost.account()
    await stranger.close()
    await lost.close()


async def test_a_missing_fleet_is_named_and_the_printed_file_makes_it(server: Server) -> None:
    made = connected(server, fleet="not-yet")
    assert "no fleet not-yet" in await made.fleet_problem()
    with pytest.raises(market_errors.Rejected):
        await made.rent(OFFERED, ORDER, LABEL.format(1))
    printed = yaml.safe_load(fleets.recipe("not-yet"))
    bare = {"type": "fleet", "name": "not-yet", "nodes": "0..20", "idle_duration": "0s"}
    assert printed == {**bare, "spot_policy": "auto"}
    spec = {"configuration": bare, "profile": {"name": "default"}}
    plan: dict[str, Any] = {"spec": spec, "current_resource": None}
    assert server.post("/api/project/main/fleets/apply", {"plan": plan, "force": False})[0] == 200
    assert "make it with `spot_policy: auto`" in await made.fleet_problem()
    status, before = server.post("/api/project/main/fleets/get", {"name": "not-yet"})
    plan = {"spec": {**spec, "configuration": printed}, "current_resource": before}
    status, said = server.post("/api/project/main/fleets/apply", {"plan": plan, "force": False})
    assert status == 200, said
    assert await made.fleet_problem() == ""
    await made.close()


async def test_a_plan_without_a_cloud_has_no_offers(ours: market.DstackMarket) -> None:
    assert list(await ours.offers(asked(min_vram_mb=8_000))) == []
    assert await ours.backends() == []
    assert "no keys of aws" in ours.not_sold()[Tenure.ON_DEMAND]


async def test_a_plan_of_one_cloud_alone_is_taken_and_has_no_offer_without_its_keys(server: Server) -> None:
    body = {"run_spec": orders.of_cloud("aws"), "max_offers": 1, "for_offers_only": True}
    status, told = server.post("/api/project/main/runs/get_plan", body)
    assert (status, told["job_plans"][0]["offers"]) == (200, [])


async def test_a_run_without_capacity_ends_in_our_words_and_leaves_nothing(ours: market.DstackMarket) -> None:
    run_id = await ours.rent(OFFERED, ORDER, LABEL.format(2))
    (waiting,) = [one for one in await ours.instances() if one.instance_id == run_id]
    assert (waiting.state, waiting.label, waiting.bills_gpu) == (InstanceState.PENDING, LABEL.format(2), False)
    assert waiting.host_id == OFFERED.host_id
    with pytest.raises(market_errors.Ambiguous):
        await ours.rent(OFFERED, ORDER, LABEL.format(2))
    failed = await until(ours, run_id, InstanceState.FAILED)
    assert "No offers" in failed.message
    assert not failed.bills_gpu
    assert await ours.logs(run_id, 10) == ()
    await gone(ours, run_id)


async def until(ours: market.DstackMarket, run_id: str, state: InstanceState) -> Instance:
    """Look at the project until a run is in a state."""
    last = time.monotonic() + dstack_server.PATIENCE_SECONDS
    while (row := await ours.instance(run_id)).state is not state:
        assert time.monotonic() < last, row
        await SystemClock().sleep(1.0)
        await ours.instances()
    return row


async def gone(ours: market.DstackMarket, run_id: str) -> None:
    """Release a run that is over: it is deleted, and releasing it again changes nothing."""
    await ours.instances()
    await ours.release(run_id)
    assert run_id not in {one.instance_id for one in await ours.instances()}
    with pytest.raises(market_errors.NotFound):
        await ours.instance(run_id)
    await ours.release(run_id)


async def test_a_stop_of_what_never_started_is_taken(ours: market.DstackMarket) -> None:
    run_id = await ours.rent(OFFERED, ORDER, LABEL.format(3))
    with pytest.raises(market_errors.Ambiguous, match="bills until"):
        await ours.release(run_id)
    for unknown in ("8a7dd9c1-fbc5-4207-ad4f-a2950f614721", "no-id-of-the-server"):
        with pytest.raises(market_errors.Unfinished, match="knows no run"):
            await ours.release(unknown)
        await ours.release(unknown, is_gone=True)


@pytest.mark.parametrize(("is_gentle", "reason"), [(True, "stopped_by_user"), (False, "aborted_by_user")])
async def test_a_gentle_release_is_a_plain_stop_and_another_one_an_abort(
    server: Server, ours: market.DstackMarket, is_gentle: bool, reason: str
) -> None:
    run_id = await ours.rent(OFFERED, ORDER, LABEL.format(20 + is_gentle))
    for again in (is_gentle, True):
        with pytest.raises(market_errors.Ambiguous, match="bills until"):
            await ours.release(run_id, is_gentle=again)
    status, told = server.post("/api/project/main/runs/get", {"id": run_id})
    assert (status, told["termination_reason"]) == (200, reason)


async def test_every_page_of_runs_is_read(server: Server, ours: market.DstackMarket) -> None:
    ids = {await ours.rent(OFFERED, ORDER, LABEL.format(number)) for number in range(100, 230)}
    assert ids <= {one.instance_id for one in await ours.instances()}
    _, rows = server.post("/api/runs/list", {"project_name": "main", "limit": 100})
    assert len(rows) == 100, "there is more than one page"


class KilledAfter(HttpExchange):
    """Carries requests; once a body with a text has been answered, the server is killed and the answer is lost."""

    def __init__(self, server: Server, part: bytes) -> None:
        super().__init__(30.0)
        self._server, self._part = server, part

    async def send(self, request: Request, most_bytes: int) -> Reply:
        reply = await super().send(request, most_bytes)
        if request.is_write and self._part in (request.body or b""):
            self._server.kill()
            return Reply(502, {}, b"<html>bad gateway</html>")
        return reply


async def test_a_server_that_is_killed_before_its_answer_arrives_has_the_run_by_its_name(server: Server) -> None:
    label = LABEL.format(4)
    made = connected(server, through=KilledAfter(server, names.run_name(label).encode()))
    with pytest.raises(market_errors.Ambiguous):
        await made.rent(OFFERED, ORDER, label)
    with pytest.raises(market_errors.Unavailable):
        await made.instances()
    server.start()
    assert [one.label for one in await made.instances() if one.label == label] == [label]
    await made.close()


class Hours(SystemClock):
    """The clock of this machine, some hours on."""

    def __init__(self) -> None:
        super().__init__()
        self.gone = timedelta()

    def now(self) -> datetime:
        return super().now() + self.gone

    def monotonic(self) -> float:
        return super().monotonic() + self.gone.total_seconds()


async def test_a_server_that_is_away_for_an_hour_shows_the_same_runs_afterwards(server: Server) -> None:
    clock = Hours()
    made = connected(server, clock=clock)
    run_id = await made.rent(OFFERED, ORDER, LABEL.format(5))
    assert run_id in {one.instance_id for one in await made.instances()}
    server.kill()
    for _ in range(4):
        with pytest.raises(market_errors.Unavailable):
            await made.instances()
        with pytest.raises(market_errors.Ambiguous):
            await made.release(run_id)
        clock.gone += timedelta(minutes=15)
    server.start()
    assert (await made.instance(run_id)).label == LABEL.format(5)
    assert run_id in {one.instance_id for one in await made.instances()}
    await made.close()


async def test_a_service_that_the_server_probes_is_taken_without_a_gateway(
    server: Server, ours: market.DstackMarket
) -> None:
    run_id = await ours.rent(OFFERED, dataclasses.replace(ORDER, page=Page(8000, "/health")), LABEL.format(6))
    assert (await ours.instance(run_id)).page_answers is None, "it has no machine"
    status, told = server.post("/api/project/main/runs/get", {"id": run_id})
    assert (status, told["run_spec"]["configuration"]["type"]) == (200, "service")
    (probe,) = told["run_spec"]["configuration"]["probes"]
    assert (probe["url"], probe["ready_after"]) == ("/health", 1)
    failed = await until(ours, run_id, InstanceState.FAILED)
    assert ("No offers" in failed.message, failed.bills_gpu, failed.page_answers) == (True, False, None)
    await gone(ours, run_id)


async def test_a_service_that_is_stopped_before_it_has_a_machine_is_over_and_deleted(ours: market.DstackMarket) -> None:
    run_id = await ours.rent(OFFERED, dataclasses.replace(ORDER, page=Page(8000, "/health")), LABEL.format(8))
    with pytest.raises(market_errors.Ambiguous, match="bills until"):
        await ours.release(run_id)
    over = await until(ours, run_id, InstanceState.FAILED)
    assert (over.bills_gpu, over.page_answers, over.is_called_over) == (False, None, False)
    await gone(ours, run_id)


WORDS = [
    "plain",
    "$",
    "$$",
    "a$",
    "u:a$$b@h",
    "$$$",
    "$a$$b",
    "a$$b$c$$d",
    "${{",
    "$${{ x }}",
    "${{ secrets.x }}",
    "$a ${{ b",
]
REWRITING = """
import json, sys
from dstack._internal.utils.interpolator import InterpolatorError, VariablesInterpolator
def told(text):
    try:
        return VariablesInterpolator({"secrets": {}}).interpolate_or_error(text)
    except InterpolatorError:
        return None
print(json.dumps([told(text) for text in json.loads(sys.argv[1])]))
"""


def rewritten(texts: list[str]) -> list[str | None]:
    """Return what the real server makes of variables; None where it ends the run."""
    command = [str(dstack_server.PROGRAM.parent / "python"), "-c", REWRITING, json.dumps(texts)]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    return list(json.loads(told.stdout))


def test_a_variable_with_dollars_arrives_as_it_was_written_and_our_simulated_server_rewrites_as_the_real_one() -> None:
    asked = dataclasses.replace(ORDER, environment=tuple((f"N{at}", text) for at, text in enumerate(WORDS)))
    sent = orders.create(OFFERED, asked, LABEL.format(9), FLEET)["configuration"]["env"]
    assert rewritten(list(sent.values())) == WORDS
    ours = [
        None if interpolation.is_refused({"env": {"A": word}}) else interpolation.interpolated(word) for word in WORDS
    ]
    assert rewritten(WORDS) == ours


async def test_our_simulated_server_answers_as_the_real_ones_document_says(server: Server) -> None:
    document, wrong = server.document(), []
    async with dstack_bench() as bench:
        side = bench.simulated.simulator.sides["dstack"]
        answer, seen = side.answer, set()

        async def held(call: Any) -> Any:
            reply = await answer(call)
            path = re.sub(r"^/api/(projects?)/main/", r"/api/\1/{project_name}/", call.path)
            seen.add(path)
            wrong.extend(dstack_server.asked(document, path, json.loads(call.body or b"{}")))
            wrong.extend(dstack_server.faults(document, path, reply.status, json.loads(reply.body)))
            return reply

        side.answer = held
        offer = await bench.offer()
        probed = dataclasses.replace(ORDER, page=Page(8000, "/health"), disk_gb=DISK_GB)
        await bench.running(await bench.market.rent(offer, probed, LABEL.format(7)))
        run_id = await bench.rent(offer)
        await bench.running(run_id)
        await bench.simulated.advance(30)
        await bench.market.instances()
        await bench.market.logs(run_id, 5)
        await bench.market.account()
        with pytest.raises(market_errors.Ambiguous):
            await bench.market.release(run_id)
        for _ in range(6):
            await bench.simulated.advance(30)
            await bench.market.instances()
        await bench.market.release(run_id)
        with pytest.raises(market_errors.NotFound):
            await bench.market.instance(run_id)
    assert wrong == []
    assert len(seen) == 11, sorted(seen)


def test_the_table_has_every_cloud_and_says_which_the_plain_server_lists(server: Server) -> None:
    known = tomllib.loads(CLOUDS.read_text())["clouds"]
    names = {each for name, row in known.items() for each in (name, *row.get("also", ()))}
    assert names == set(server.document()["components"]["schemas"]["BackendType"]["enum"])
    status, listed = server.post("/api/backends/list_types")
    assert status == 200
    assert set(listed) == {name for name, row in known.items() if row["listed"]}
