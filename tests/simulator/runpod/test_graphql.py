"""GraphQL of the simulated RunPod: any way of asking, the vendor's envelopes, its units, bids and their end."""

import ast
import asyncio
import json
import os
import pathlib
import re
from typing import Any

import pytest

from agent.simulator import climate, climate_files
from agent.simulator.climate import Climate, Demand
from agent.simulator.runpod import sales_modes
from agent.simulator.runpod.climate_table import Runpod
from tests.support import levers
from tests.support.market import STILL
from tests.support.pods import A4000, Pods, running_pods

CREATE = """mutation Make($input: PodFindAndDeployOnDemandInput!) {
  podFindAndDeployOnDemand(input: $input) { id imageName env machineId machine { podHostId } desiredStatus costPerHr }
}"""
BID = """mutation Bid($input: PodRentInterruptableInput!) {
  podRentInterruptable(input: $input) { id desiredStatus podType costPerHr lastStatusChange }
}"""
POD = """query One($id: String!) { pod(input: {podId: $id}) {
  id desiredStatus lastStatusChange podType costPerHr gpuCount env ports lowestBidPriceToResume uptimeSeconds
  runtime { uptimeInSeconds ports { ip isIpPublic privatePort publicPort type } }
  machine { gpuDisplayName gpuAvailable }
} }"""


def terms(**more: Any) -> dict[str, Any]:
    made = {"cloudType": "SECURE", "gpuTypeId": A4000, "gpuCount": 1, "name": "bid1", "imageName": "ubuntu:22.04"}
    return {**made, "containerDiskInGb": 10, "volumeInGb": 0, **more}


async def bid(pods: Pods, per_gpu: float, **more: Any) -> dict[str, Any]:
    answer = await pods.ask(BID, {"input": terms(bidPerGpu=per_gpu, **more)})
    return dict(answer["podRentInterruptable"])


async def pod(pods: Pods, pod_id: str) -> dict[str, Any]:
    return dict((await pods.ask(POD, {"id": pod_id}))["pod"])


async def refusal(pods: Pods, query: str, variables: Any = None) -> dict[str, Any]:
    answer = await pods.call("POST", "/graphql", {"query": query, "variables": variables})
    assert answer.status == 200, answer.raw
    (error,) = answer.body["errors"]
    assert answer.body["data"] == {error["path"][0]: None}
    return dict(error)


async def machine_of(pods: Pods, pod_id: str) -> int:
    return int(next(row["machine_id"] for row in (await pods.truth())["contracts"] if row["id"] == pod_id))


# --- the way of asking ----------------------------------------------------------------------------------------------
async def test_aliases_literals_variables_fragments_and_several_fields(pods: Pods) -> None:
    data = await pods.ask(
        """query Many($n: Int!) {
          one: gpuTypes(input: {id: "NVIDIA RTX A4000"}) { ...priced }
          two: gpuTypes(input: {ids: ["NVIDIA RTX A4000"]}) { ...priced }
          myself { id clientBalance }
        }
        fragment priced on GpuType {
          id securePrice secureSpotPrice
          single: lowestPrice(input: {gpuCount: 1, secureCloud: true,}) { uninterruptablePrice minimumBidPrice }
          several: lowestPrice(input: {gpuCount: $n, secureCloud: true}) { uninterruptablePrice minimumBidPrice }
        }""",
        {"n": 3},
    )
    assert data["one"] == data["two"]
    (row,) = data["one"]
    assert (row["securePrice"], row["secureSpotPrice"]) == (0.24, 0.16)
    assert row["single"] == {"uninterruptablePrice": 0.24, "minimumBidPrice": 0.16}
    assert row["several"] == {"uninterruptablePrice": pytest.approx(0.72), "minimumBidPrice": pytest.approx(0.48)}
    assert data["myself"]["clientBalance"] == 100.0


@pytest.mark.parametrize(
    ("query", "variables", "code"),
    [
        ("query { gpuTypes { interruptablePrice } }", None, "GRAPHQL_VALIDATION_FAILED"),
        ("query { gpuTypes { lowestPrice(input: {}) { minVcpu } } }", None, "GRAPHQL_VALIDATION_FAILED"),
        ("query Q($i: Wrong!) { pod(input: $i) { id } }", {"i": {}}, "GRAPHQL_VALIDATION_FAILED"),
        ('mutation { podStop(input: {podId: "a "b""}) { id } }', None, "GRAPHQL_PARSE_FAILED"),
        (
            'mutation { podResume(input: {podId: "a", allowedCudaVersions: ["12.8"]}) { id } }',
            None,
            "GRAPHQL_VALIDATION_FAILED",
        ),
        (BID, {"input": {"gpuCount": 1}}, "BAD_USER_INPUT"),
        (BID, None, "BAD_USER_INPUT"),
        (None, None, "BAD_REQUEST"),
    ],
)
async def test_what_the_schema_refuses_is_400(pods: Pods, query: str | None, variables: Any, code: str) -> None:
    answer = await pods.call("POST", "/graphql", {"query": query, "variables": variables})
    assert answer.status == 400
    assert answer.body["errors"][0]["extensions"]["code"] == code
    assert "data" not in answer.body


async def test_keys(pods: Pods) -> None:
    assert (await pods.call("POST", "/graphql", {"query": "{ gpuTypes { id } }"}, key="rpa_wrong")).status == 401
    anonymous = await pods.call("POST", "/graphql", {"query": "{ myself { id } countryCodes }"}, key=None)
    assert anonymous.body["data"]["myself"] is None
    assert anonymous.body["data"]["countryCodes"]
    query = await pods.call("POST", "/graphql", {"query": "{ myself { id } }"}, key=None, api_key="simulated-key")
    assert query.body["data"]["myself"]["id"].startswith("user_")
    asked = {"query": 'mutation { podStop(input: {podId: "x"}) { id } }'}
    stop = await pods.call("POST", "/graphql", asked, key=None)
    assert stop.body["errors"][0]["message"] == "Unauthorized"


async def test_a_life_on_demand(pods: Pods) -> None:
    made = (await pods.ask(CREATE, {"input": terms(env=[{"key": "A", "value": "b"}], ports="22/tcp,8888/http")}))[
        "podFindAndDeployOnDemand"
    ]
    assert re.fullmatch(r"[a-z0-9]{14}", made["id"])
    assert re.fullmatch(r"[a-z0-9]{12}", made["machineId"])
    assert made["env"] == ["A=b"]
    assert (made["desiredStatus"], made["costPerHr"]) == ("RUNNING", 0.24)
    shown = await pod(pods, made["id"])
    assert (shown["runtime"], shown["podType"], shown["uptimeSeconds"]) == (None, "RESERVED", 0)
    assert shown["lastStatusChange"] == "Rented by User: Thu Nov 05 2026 00:00:00 GMT+0000 (Coordinated Universal Time)"
    await pods.advance(600.0)
    ports = (await pod(pods, made["id"]))["runtime"]["ports"]
    assert {(port["privatePort"], port["type"], port["isIpPublic"]) for port in ports} == {
        (22, "tcp", True),
        (8888, "http", False),
    }
    stopped = await pods.ask(
        "mutation($id: String!) { podStop(input: {podId: $id}) { desiredStatus lastStatusChange } }", {"id": made["id"]}
    )
    assert stopped["podStop"]["lastStatusChange"].startswith("Exited by user: ")
    assert (await pod(pods, made["id"]))["runtime"] is not None  # stale for a while
    await pods.advance(120.0)
    assert (await pod(pods, made["id"]))["runtime"] is None
    ended = await pods.ask("mutation($id: String!) { podTerminate(input: {podId: $id}) }", {"id": made["id"]})
    assert ended == {"podTerminate": None}
    assert (await pods.ask(POD, {"id": made["id"]}))["pod"] is None
    again = await refusal(pods, f'mutation {{ podTerminate(input: {{podId: "{made["id"]}"}}) }}')
    assert again["message"] == "pod not found to terminate"


async def test_a_price_ceiling_and_sold_out(pods: Pods) -> None:
    error = await refusal(pods, CREATE, {"input": terms(deployCost=0.1)})
    assert error["extensions"] == {"code": "SUPPLY_CONSTRAINT"}
    assert "no longer any instances available with the requested specifications" in error["message"]
    # Empty texts are as good as nothing said.
    assert await pods.ask(CREATE, {"input": terms(deployCost=0.5, dataCenterId="", networkVolumeId="", templateId="")})


# --- bids -----------------------------------------------------------------------------------------------------------
async def test_a_bid_is_what_is_paid(pods: Pods) -> None:
    made = await bid(pods, 0.2)
    assert (made["podType"], made["costPerHr"]) == ("INTERRUPTABLE", 0.2)
    await pods.advance(3600.0)
    (row,) = (await pods.truth())["contracts"]
    assert row["charged"]["gpu"] == pytest.approx(0.2)
    error = await refusal(pods, BID, {"input": terms(bidPerGpu=0.15)})
    assert (
        error["message"] == "There are no instances available with the request specifications. Please try again later."
    )


@pytest.mark.parametrize("rival", [{"bid": 0.21}, {"on_demand": True}])
async def test_outbid(pods: Pods, rival: dict[str, Any]) -> None:
    made = await bid(pods, 0.2, volumeInGb=100)
    await pods.advance(600.0)
    machine = await machine_of(pods, made["id"])
    levers.clear_host(pods.world, machine)
    assert (await pods.control("POST", "/rivals", {"machine_id": machine, **rival})).status == 200
    await pods.advance(4.0)
    assert (await pod(pods, made["id"]))["desiredStatus"] == "RUNNING"  # SIGTERM was sent, SIGKILL was not
    await pods.advance(1.0)
    lost = await pod(pods, made["id"])
    assert (lost["desiredStatus"], lost["machine"]["gpuAvailable"]) == ("EXITED", 0)
    assert lost["lastStatusChange"] == "Outbid: Thu Nov 05 2026 00:10:05 GMT+0000 (Coordinated Universal Time)"
    before = (await pods.truth())["charged_total"]
    await pods.advance(7200.0)  # the stopped rate, and nothing starts it by itself
    assert (await pods.truth())["charged_total"] - before == pytest.approx(100 * 0.2 / 720 * 2)
    assert (await pod(pods, made["id"]))["desiredStatus"] == "EXITED"


async def test_resume_of_an_outbid_pod_is_on_its_host_or_not_at_all(pods: Pods) -> None:
    made = await bid(pods, 0.2)
    machine = await machine_of(pods, made["id"])
    levers.clear_host(pods.world, machine)
    rival = (await pods.control("POST", "/rivals", {"machine_id": machine, "bid": 0.3})).body["id"]
    await pods.advance(10.0)
    resume = (
        f'mutation {{ podBidResume(input: {{podId: "{made["id"]}", bidPerGpu: %s, gpuCount: 1}}) {{ desiredStatus }} }}'
    )
    assert "outbid" in (await refusal(pods, resume % 0.25))["message"]
    plain = f'mutation {{ podResume(input: {{podId: "{made["id"]}"}}) {{ id }} }}'
    assert (await refusal(pods, plain))["message"] == "Cannot resume a spot pod as an on demand pod."
    await pods.control("DELETE", f"/rivals/{rival}")
    owner = (await pods.control("POST", "/rivals", {"machine_id": machine, "on_demand": True})).body["id"]
    full = await refusal(pods, resume % 5.0)
    assert full["message"] == "There are not enough free GPUs on the host machine to start this pod."
    await pods.control("DELETE", f"/rivals/{owner}")
    assert (await pods.ask(resume % 0.16))["podBidResume"] == {"desiredStatus": "RUNNING"}
    assert await machine_of(pods, made["id"]) == machine
    assert (await refusal(pods, resume % 0.2))["message"] == "Cannot resume a pod that is not in exited state"


async def test_an_equal_bid_displaces_nobody(pods: Pods) -> None:
    made = await bid(pods, 0.2)
    machine = await machine_of(pods, made["id"])
    levers.clear_host(pods.world, machine)
    assert (await pods.control("POST", "/rivals", {"machine_id": machine, "bid": 0.2})).status == 400
    await pods.advance(10.0)
    assert (await pod(pods, made["id"]))["desiredStatus"] == "RUNNING"


# --- offers ---------------------------------------------------------------------------------------------------------
async def mode(pods: Pods, name: str) -> None:
    assert (await pods.control("POST", "/mode", {"mode": name})).body == {"mode": name}


FLOOR = """{ gpuTypes(input: {id: "NVIDIA RTX A4000"}) {
  secureSpotPrice lowestPrice(input: {gpuCount: 2, secureCloud: true}) { minimumBidPrice uninterruptablePrice }
} }"""


async def test_a_floor_that_equals_the_price(pods: Pods) -> None:
    await mode(pods, "floor_equals_ondemand")
    (row,) = (await pods.ask(FLOOR))["gpuTypes"]
    assert row["secureSpotPrice"] == 0.24
    assert row["lowestPrice"] == {"minimumBidPrice": 0.48, "uninterruptablePrice": 0.48}
    await refusal(pods, BID, {"input": terms(bidPerGpu=0.2)})
    assert (await bid(pods, 0.24))["desiredStatus"] == "RUNNING"


async def test_bids_come_to_an_end(pods: Pods) -> None:
    kept = await bid(pods, 0.2)
    await mode(pods, "spot_discontinued")
    error = await refusal(pods, BID, {"input": terms(bidPerGpu=1.0)})
    assert "no instances available" in error["message"]
    old = {"interruptible": True, "gpuTypeIds": [A4000], "imageName": "a"}
    first = await pods.call("POST", "/v1/pods", old)
    assert (first.status, first.body["error"]) == (500, "create pod: Spot pods are no longer offered")
    assert (await pod(pods, kept["id"]))["desiredStatus"] == "RUNNING"
    await pods.ask(f'mutation {{ podStop(input: {{podId: "{kept["id"]}"}}) {{ id }} }}')
    resume = f'mutation {{ podBidResume(input: {{podId: "{kept["id"]}", bidPerGpu: 1.0, gpuCount: 1}}) {{ id }} }}'
    assert (await refusal(pods, resume))["message"] == "Spot pods are no longer offered"
    await mode(pods, "spot_removed")
    removed = await pods.call("POST", "/graphql", {"query": BID, "variables": {"input": terms(bidPerGpu=1.0)}})
    assert removed.status == 400
    assert (await pods.call("GET", "/v1/pods")).status == 200
    await mode(pods, "v1_gone")
    assert (await pods.call("GET", "/v1/pods")).status == 410
    assert (await pods.ask("{ myself { id } }"))["myself"]
    await mode(pods, "graphql_gone")
    assert (await pods.call("POST", "/graphql", {"query": "{ myself { id } }"})).status == 410
    assert (await pods.create()).status == 201


async def test_a_climate_takes_them_away_step_by_step() -> None:
    seen = []
    async with running_pods(climate_files.named("bids_end")) as pods:
        for _ in range(7):
            seen.append((await pods.truth())["mode"])
            await pods.advance(14_400.0)
    assert seen == [*sales_modes.NAMES, "graphql_gone"]


def test_a_climate_with_a_mode_nobody_knows() -> None:
    for text in ('[runpod]\nmode = "auction"', '[[runpod.turns]]\nat_seconds = 1\nmode = "auction"'):
        with pytest.raises(climate.ClimateError, match="spot_discontinued"):
            climate_files.parse(text, "mine")


async def test_a_mode_nobody_knows(pods: Pods) -> None:
    answer = await pods.control("POST", "/mode", {"mode": "auction"})
    assert answer.status == 400
    assert "spot_discontinued" in answer.body["error"]


async def test_others_take_stock_and_return_it() -> None:
    busy = Climate(name="busy", demand=Demand(arrivals=1.0, taken=0.6), pull_failure_probability=0.0, failures=0.0)
    counts = []
    async with running_pods(busy) as pods:
        for _ in range(24):
            await pods.advance(3600.0)
            hosts = pods.world.hosts.values()
            counts.append(sum(pods.world.stock.free(host) for host in hosts))
        total = sum(host.gpu_count for host in hosts)
    assert len(set(counts)) > 12
    assert sum(counts) / total / len(counts) == pytest.approx(0.4, abs=0.07)


async def test_the_same_seed_gives_the_same_day() -> None:
    async def day() -> list[Any]:
        async with running_pods(Climate(name="busy")) as pods:
            told = []
            for _ in range(4):
                made = await pods.create(gpu={"id": A4000, "count": 1})
                await pods.advance(7200.0)
                told.append((made.status, await pods.truth()))
        return told

    first, second = await asyncio.gather(day(), day())
    assert first == second


# --- REST v1 and the recorded requests ------------------------------------------------------------------------------
async def test_the_retired_rest_api(pods: Pods) -> None:
    body = {"imageName": "i:1", "gpuTypeIds": [A4000], "name": "old", "ports": ["22/tcp"], "env": {"A": "b"}}
    made = await pods.call("POST", "/v1/pods", body)
    assert (made.status, made.body["desiredStatus"], made.body["env"]) == (201, "RUNNING", {"A": "b"})
    path = f"/v1/pods/{made.body['id']}"
    assert [row["id"] for row in (await pods.call("GET", "/v1/pods")).body] == [made.body["id"]]
    for verb, status in (("stop", "EXITED"), ("start", "RUNNING"), ("restart", "RUNNING"), ("reset", "RUNNING")):
        assert (await pods.call("POST", f"{path}/{verb}")).body["desiredStatus"] == status
    assert (await pods.call("PATCH", path, {"name": "x"})).body["name"] == "x"
    cpu = {"imageName": "i:1", "computeType": "CPU", "containerDiskInGb": 20, "cloudType": "SECURE"}
    assert (await pods.call("POST", "/v1/pods", cpu)).status == 201
    assert (await pods.call("POST", "/v1/pods", {**body, "gpuCount": 99})).status == 500
    assert (await pods.call("DELETE", path)).status == 204
    gone = await pods.call("GET", path)
    assert (gone.status, gone.body["status"]) == (404, 404)


RECORDED = os.environ.get("GPUBID_RECORDED")


@pytest.mark.skipif(not RECORDED, reason="GPUBID_RECORDED names no folder of recordings")
async def test_the_requests_that_the_vendors_command_line_was_seen_to_send(pods: Pods) -> None:
    text = (pathlib.Path(RECORDED or "") / "runpod" / "recorded_runpodctl_requests.txt").read_text(encoding="utf-8")
    made = (await pods.ask(CREATE, {"input": terms()}))["podFindAndDeployOnDemand"]["id"]
    pods.world.volumes.create("data", 10, "US-KS-2", "nv1")
    asked = 0
    for query, variables in re.findall(r"^  Q (.*)\n  V (.*)$", text, flags=re.MULTILINE):
        given = ast.literal_eval(variables)
        if given and "podId" in given:
            given["podId"] = made
        answer = await pods.call("POST", "/graphql", {"query": query, "variables": given})
        assert answer.status == 200, (query, answer.raw)
        for error in answer.body.get("errors", []):
            assert error["extensions"]["code"] in {"SUPPLY_CONSTRAINT", "RUNPOD"}, (query, error)
        asked += 1
    assert asked == 13


@pytest.mark.skipif(not RECORDED, reason="GPUBID_RECORDED names no folder of recordings")
@pytest.mark.parametrize("name", ["gpuTypes_20250615T102705_aef71e0", "gpuTypes_20250615T142748_4b1765e"])
async def test_types_and_prices_are_the_recorded_ones(pods: Pods, name: str) -> None:
    recorded = json.loads((pathlib.Path(RECORDED or "") / "runpod" / f"{name}.json").read_text(encoding="utf-8"))
    fields = ["id", "displayName", "memoryInGb", "secureCloud", "communityCloud", "securePrice", "secureSpotPrice"]
    fields += ["communityPrice", "communitySpotPrice"]
    told = (await pods.ask(f"{{ gpuTypes {{ {' '.join(fields)} maxGpuCount }} }}"))["gpuTypes"]
    by_id = {row["id"]: row for row in told}
    for row in recorded:
        if row["id"] != "unknown":
            assert {field: by_id[row["id"]][field] for field in fields} == {field: row[field] for field in fields}
            assert abs(by_id[row["id"]]["maxGpuCount"] - row["maxGpuCount"]) <= 2
    assert by_id.keys() == {row["id"] for row in recorded}
    assert pods.world.climate.table(Runpod).mode == "historical"


async def test_today_no_pod_is_made_at_a_bid() -> None:
    async with running_pods(STILL) as pods:
        assert (await pods.truth())["mode"] == "spot_discontinued"
        error = await refusal(pods, BID, {"input": terms(bidPerGpu=1.0)})
        assert "no instances available" in error["message"]
        assert (await pods.create()).status == 201
