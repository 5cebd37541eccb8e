"""REST v2 of the simulated RunPod: shapes by its published document, states, refusals, billing, logs."""

import json
import os
import pathlib
from typing import Any

import aiohttp
import jsonschema
import pytest

from agent.simulator.runpod.http import rate_windows
from tests.support.market import START
from tests.support.pods import A4000, Pods, running_pods

SPECIFICATION = os.environ.get("GPUBID_RUNPOD_OPENAPI", "")


def fits(answer: Any, schema: str) -> None:
    """Hold an answer against the published document where GPUBID_RUNPOD_OPENAPI names a copy of it."""
    if SPECIFICATION:
        document = json.loads(pathlib.Path(SPECIFICATION).read_text(encoding="utf-8"))
        jsonschema.validate(answer, {"$ref": f"#/components/schemas/{schema}", **document})


async def test_a_life_from_create_to_delete(pods: Pods) -> None:
    made = await pods.create(ports=["22/tcp", "8888/http"], env={"A": "b"}, mounts=volume(20))
    assert (made.status, made.body["status"]) == (201, "PROVISIONING")
    fits(made.body, "Pod")
    pod = await pods.running(made.body["id"])
    fits(pod, "Pod")
    assert (pod["gpu"], pod["cost"], pod["cloud"]) == ({"id": A4000, "count": 1}, 0.24, "SECURE")
    assert {port["private"]: port["type"] for port in pod["runtime"]["ports"]} == {22: "tcp", 8888: "http"}
    listed = (await pods.call("GET", "/v2/pods")).body
    fits(listed, "ListPodsResponse")
    assert [row["id"] for row in listed["pods"]] == [pod["id"]]
    stopped = await pods.act(pod["id"], "stop")
    assert (stopped.status, stopped.body["status"], stopped.body["cost"]) == (200, "EXITED", 0.0)
    assert stopped.body["actions"] == ["start", "terminate"]
    assert (await pods.act(pod["id"], "stop")).status == 409
    assert (await pods.act(pod["id"], "start")).body["status"] == "STARTING"
    assert (await pods.call("DELETE", f"/v2/pods/{pod['id']}")).status == 204
    assert (await pods.call("GET", f"/v2/pods/{pod['id']}")).status == 404
    (row,) = (await pods.truth())["contracts"]
    assert (row["id"], row["label"], row["end_cause"]) == (pod["id"], "exp1", "destroyed")


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"interruptible": True}, 422),
        ({"gpu": {"id": A4000, "count": 0}}, 422),
        ({"mounts": {"persistent": {"size": 5, "path": "/w"}}}, 422),
        ({"gpu": {"id": "NVIDIA Abacus"}}, 400),
        ({"cpu": {"id": "cpu3c", "vcpuCount": 2}}, 400),
        ({"gpu": {"id": A4000, "count": 200}}, 400),
        ({"templateId": "abc"}, 404),
    ],
)
async def test_a_create_that_cannot_be(pods: Pods, fields: dict[str, Any], status: int) -> None:
    answer = await pods.create(**fields)
    assert (answer.status, answer.content_type) == (status, "application/problem+json")
    fits(answer.body, "ErrorResponse")
    assert (await pods.truth())["contracts"] == []


async def test_what_is_sold_out_says_so(pods: Pods) -> None:
    ids = []
    while (answer := await pods.create(gpu={"id": A4000, "count": 4})).status == 201:
        ids.append(answer.body["id"])
    assert ids
    assert answer.status == 400
    assert "no longer any instances available" in answer.body["detail"]
    gpu = (await pods.call("GET", f"/v2/catalog/gpus/{A4000}", **question(count="4", cloud="SECURE"))).body
    assert gpu["availability"] == "NONE"
    await pods.act(ids[0], "terminate")
    gpu = (await pods.call("GET", f"/v2/catalog/gpus/{A4000}", **question(count="4", cloud="SECURE"))).body
    assert gpu["availability"] == "LOW"


async def test_the_catalogue(pods: Pods) -> None:
    plain = (await pods.call("GET", "/v2/catalog/gpus")).body
    fits(plain, "ListGpuTypesResponse")
    assert len(plain["gpus"]) == 38
    by_id = {gpu["id"]: gpu for gpu in plain["gpus"]}
    assert by_id[A4000]["price"] == {"secure": 0.24, "community": 0.17}
    assert "availability" not in by_id[A4000]
    asked = (await pods.call("GET", "/v2/catalog/gpus", **question())).body
    fits(asked, "ListGpuTypesResponse")
    assert {gpu["availability"] for gpu in asked["gpus"]} <= {"NONE", "LOW", "MEDIUM", "HIGH"}
    assert (await pods.call("GET", "/v2/catalog/gpus", include="AVAILABILITY")).status == 400
    fits(
        (await pods.call("GET", "/v2/catalog/datacenters", include="GPU_AVAILABILITY")).body, "ListDataCentersResponse"
    )


async def test_billing_says_what_the_truth_says(pods: Pods) -> None:
    pod_id = await pods.created(mounts=volume(100))
    await pods.advance(3600.0)
    await pods.act(pod_id, "stop")
    await pods.advance(3600.0)
    billed = (await pods.call("GET", "/v2/billing/pods", bucketSize="hour")).body
    fits(billed, "ListPodBillingResponse")
    first, second = billed["records"]
    assert (first["podId"], first["startTime"]) == (pod_id, "2026-11-05T00:00:00Z")
    assert first["gpuAmount"] == pytest.approx(0.24)
    assert first["diskAmount"] == pytest.approx((20 * 0.1 + 100 * 0.1) / 720)
    assert second["gpuAmount"] == 0
    assert second["diskAmount"] == pytest.approx(100 * 0.2 / 720)
    truth = await pods.truth()
    assert billed["metadata"]["totals"]["totalAmount"] == pytest.approx(truth["charged_total"])
    assert pods.world.credit == pytest.approx(100.0 - truth["charged_total"])
    whole = (await pods.call("GET", "/v2/billing")).body
    fits(whole, "ListBillingResponse")
    assert whole["records"][0]["totalAmount"] == pytest.approx(truth["charged_total"])


async def test_an_hour_of_its_cost_must_be_there(pods: Pods) -> None:
    pods.world.set_credit(0.2)
    answer = await pods.create()
    assert (answer.status, "need at least $0.24" in answer.body["detail"]) == (400, True)


async def test_an_empty_balance_ends_what_has_no_network_volume(pods: Pods) -> None:
    pod_id = await pods.created()
    pods.world.set_credit(0.001)
    await pods.advance(900.0)
    assert (await pods.call("GET", f"/v2/pods/{pod_id}")).status == 404
    assert (await pods.truth())["contracts"][0]["end_cause"] == "balance"


async def test_a_network_volume_pins_the_data_centre_outlives_its_pods_and_bills_by_the_hour(pods: Pods) -> None:
    center = next(host.center_id for host in pods.world.hosts.values() if host.gpu.type_id == A4000 and host.center_id)
    wanted = {"name": "data", "size": 1500, "dataCenter": center}
    made = await pods.call("POST", "/v2/network-volumes", wanted)
    fits(made.body, "NetworkVolume")
    assert (made.status, made.body["dataCenter"]) == (201, center)
    mounts = {"network": [{"volumeId": made.body["id"], "path": "/workspace"}]}
    before = pods.world.credit
    first = (await pods.create(mounts=mounts, dataCenterIds=[])).body
    assert (first["dataCenterId"], first["mounts"]) == (center, mounts)
    assert (await pods.call("DELETE", f"/v2/network-volumes/{made.body['id']}")).status == 409
    assert (await pods.act(first["id"], "stop")).status == 200
    spent = before - pods.world.credit
    await pods.advance(7200.0)
    # 1000 GB at $0.07 and 500 GB at $0.05 for two hours of a month of 720; the stopped pod itself costs nothing.
    assert before - pods.world.credit - spent == pytest.approx(95.0 / 720 * 2)
    assert (await pods.call("DELETE", f"/v2/pods/{first['id']}")).status == 204
    listed = (await pods.call("GET", "/v2/network-volumes")).body
    fits(listed, "ListNetworkVolumesResponse")
    assert listed == {"networkVolumes": [made.body]}
    bill = (await pods.call("GET", "/v2/billing/network-volumes?bucketSize=day")).body
    fits(bill, "ListNetworkVolumeBillingResponse")
    assert bill["metadata"]["totals"]["totalAmount"] == pytest.approx(95.0 / 720 * 2)
    whole = (await pods.call("GET", "/v2/billing?bucketSize=day")).body["metadata"]["totals"]
    assert whole["storageStandardAmount"] == pytest.approx(95.0 / 720 * 2)
    assert (await pods.call("PATCH", f"/v2/network-volumes/{made.body['id']}", {"size": 20})).status == 400
    assert (await pods.call("DELETE", f"/v2/network-volumes/{made.body['id']}")).status == 204
    assert (await pods.create(mounts=mounts)).status == 400


async def test_work_on_a_network_volume_goes_on_in_the_next_pod(pods: Pods) -> None:
    center = next(host.center_id for host in pods.world.hosts.values() if host.gpu.type_id == A4000 and host.center_id)
    pods.world.volumes.create("data", 10, center or "", "nv1")
    mounted = {"mounts": {"network": [{"volumeId": "nv1", "path": "/workspace"}]}, "env": {"SIM_DONE_AFTER": "3600"}}
    first = (await pods.create(**mounted)).body["id"]
    await pods.running(first)
    await pods.advance(3000.0)
    assert (await pods.call("DELETE", f"/v2/pods/{first}")).status == 204
    second = (await pods.create(**mounted)).body["id"]
    await pods.running(second)
    truth = pods.world.pod(second)
    await pods.advance(900.0)
    assert truth.worked >= 3600.0


async def test_a_key_it_does_not_know(pods: Pods) -> None:
    for key in ("wrong", None):
        assert (await pods.call("GET", "/v2/pods", key=key)).status == 401


async def test_windows_are_told_and_kept() -> None:
    async with running_pods(limits=rate_windows.published()) as pods:
        answers = [await pods.call("GET", "/v2/pods") for _ in range(61)]
    assert answers[0].headers["RateLimit"].startswith('"minute";r=59;t=60, "hour";r=2999')
    assert answers[0].headers["RateLimit-Policy"] == '"minute";q=60;w=60, "hour";q=3000;w=3600, "day";q=50000;w=86400'
    assert [answer.status for answer in answers] == [200] * 60 + [429]
    assert answers[-1].headers["Retry-After"] == "60"


async def test_logs_come_as_events_and_go_on(pods: Pods) -> None:
    pod_id = await pods.created(env={"SIM_READY_AFTER": "5", "SIM_READY_LINE": "up"})
    await pods.running(pod_id)
    await pods.advance(30.0)
    headers = {"Authorization": "Bearer simulated-key"}
    url = f"{pods.simulator.runpod_url}/v2/pods/{pod_id}/logs"
    async with pods.session.get(url, headers=headers, timeout=aiohttp.ClientTimeout(10)) as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        first = [await response.content.readline() for _ in range(6)]
        assert json.loads(first[4].removeprefix(b"data: "))["line"] == "up"
        await pods.advance(60.0)
        told = [await response.content.readline() for _ in range(2)]
        assert json.loads(told[1].removeprefix(b"data: "))["line"] == "step 1"
        await pods.act(pod_id, "terminate")
        await pods.advance(1.0)
        rest = await response.content.read()
    assert b"stopped" in rest


async def test_weather_blows_here_too(pods: Pods) -> None:
    pod_id = await pods.created()
    fault = await pods.weather("empty_list", route="GET /v2/pods")
    assert (await pods.call("GET", "/v2/pods")).body == {"pods": []}
    await pods.control("DELETE", f"/weather/{fault}")
    assert len((await pods.call("GET", "/v2/pods")).body["pods"]) == 1
    await pods.weather("throttle_retry_after", retry_after=7)
    answer = await pods.call("GET", f"/v2/pods/{pod_id}")
    assert (answer.status, answer.headers["Retry-After"]) == (429, "7")
    await pods.control("DELETE", "/weather")
    await pods.weather("reset", route="POST /v2/pods")
    with pytest.raises(aiohttp.ClientError):
        await pods.create()
    await pods.control("DELETE", "/weather")
    assert len((await pods.call("GET", "/v2/pods")).body["pods"]) == 2


async def test_what_is_listed_may_be_sold_out_all_the_same(pods: Pods) -> None:
    await pods.weather("sold_out")
    answer = await pods.create()
    assert (answer.status, "no longer any instances available" in answer.body["detail"]) == (400, True)
    gpu = (await pods.call("GET", f"/v2/catalog/gpus/{A4000}", **question())).body
    assert gpu["availability"] != "NONE"
    await pods.control("DELETE", "/weather")
    assert (await pods.create()).status == 201


async def test_a_silent_host_costs_nothing_and_reports_nothing(pods: Pods) -> None:
    pod_id = await pods.created()
    await pods.running(pod_id)
    await pods.weather("host_offline", seconds=3600)
    before = (await pods.truth())["charged_total"]
    await pods.advance(1800.0)
    pod = await pods.show(pod_id)
    assert (pod["status"], pod["runtime"]) == ("RUNNING", None)
    assert (await pods.truth())["charged_total"] == pytest.approx(before)
    await pods.advance(1900.0)
    assert (await pods.show(pod_id))["runtime"] is not None
    assert pods.world.now > START


def volume(size: int) -> dict[str, Any]:
    return {"persistent": {"size": size, "path": "/workspace"}}


def question(**more: str) -> dict[str, str]:
    return {"include": "AVAILABILITY", "product": "POD", **more}
