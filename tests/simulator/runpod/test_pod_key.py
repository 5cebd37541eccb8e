"""The key that each pod's container has: it may show, start, stop and end its own pod, over each API, and no more."""

from typing import Any

import pytest

from tests.support.pods import A4000, Pods

STOP = """mutation Stop($id: String!) { podStop(input: {podId: $id}) { id desiredStatus } }"""
START = """mutation Start($id: String!) { podResume(input: {podId: $id, gpuCount: 1}) { id desiredStatus } }"""
BID_START = """mutation Start($id: String!) {
  podBidResume(input: {podId: $id, bidPerGpu: 0.3, gpuCount: 1}) { id desiredStatus }
}"""
SHOW = """query One($id: String!) { pod(input: {podId: $id}) { id desiredStatus } }"""
END = """mutation End($id: String!) { podTerminate(input: {podId: $id}) }"""
EDIT = """mutation Edit($id: String!) { podEditJob(input: {podId: $id, imageName: "other"}) { id } }"""
MYSELF = "query { myself { id clientBalance } }"
RENT = f"""mutation {{ podFindAndDeployOnDemand(input: {{
  cloudType: SECURE, gpuTypeId: "{A4000}", gpuCount: 1, name: "more", imageName: "ubuntu:22.04", containerDiskInGb: 10
}}) {{ id }} }}"""


async def two(pods: Pods) -> tuple[str, str, str]:
    """Make two pods that run; give the first, its key, and the second."""
    own, other = await pods.created(), await pods.created()
    await pods.running(own)
    await pods.running(other)
    return own, pods.simulator.runpod.pod_key(own), other


async def asked(pods: Pods, key: str, query: str, pod_id: str) -> dict[str, Any]:
    answer = await pods.call("POST", "/graphql", {"query": query, "variables": {"id": pod_id}}, key=key)
    assert answer.status == 200, answer.raw
    return dict(answer.body)


async def test_a_pods_key_shows_stops_starts_and_ends_its_pod_over_rest(pods: Pods) -> None:
    own, key, _ = await two(pods)
    assert (await pods.call("GET", f"/v2/pods/{own}", key=key)).body["id"] == own
    stopped = await pods.call("POST", f"/v2/pods/{own}/action", {"action": "stop"}, key=key)
    assert (stopped.status, stopped.body["status"]) == (200, "EXITED")
    started = await pods.call("POST", f"/v2/pods/{own}/action", {"action": "start"}, key=key)
    assert (started.status, started.body["status"]) == (200, "STARTING")
    assert (await pods.call("DELETE", f"/v2/pods/{own}", key=key)).status == 204
    # The key has gone with its pod.
    assert (await pods.call("GET", f"/v2/pods/{own}", key=key)).status == 401


async def test_a_pods_key_shows_stops_starts_and_ends_its_pod_over_the_first_rest_api(pods: Pods) -> None:
    own, key, _ = await two(pods)
    assert (await pods.call("GET", f"/v1/pods/{own}", key=key)).body["id"] == own
    stopped = await pods.call("POST", f"/v1/pods/{own}/stop", key=key)
    assert (stopped.status, stopped.body["desiredStatus"]) == (200, "EXITED")
    started = await pods.call("POST", f"/v1/pods/{own}/start", key=key)
    assert (started.status, started.body["desiredStatus"]) == (200, "RUNNING")
    assert (await pods.call("DELETE", f"/v1/pods/{own}", key=key)).status == 204
    assert (await pods.truth())["contracts"][0]["end_cause"] == "destroyed"


async def test_a_pods_key_shows_stops_starts_and_ends_its_pod_over_graphql(pods: Pods) -> None:
    own, key, _ = await two(pods)
    assert (await asked(pods, key, SHOW, own))["data"]["pod"] == {"id": own, "desiredStatus": "RUNNING"}
    assert (await asked(pods, key, STOP, own))["data"]["podStop"] == {"id": own, "desiredStatus": "EXITED"}
    assert (await asked(pods, key, START, own))["data"]["podResume"] == {"id": own, "desiredStatus": "RUNNING"}
    assert await asked(pods, key, END, own) == {"data": {"podTerminate": None}}
    assert (await pods.truth())["contracts"][0]["end_cause"] == "destroyed"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v2/pods/{other}", None),
        ("DELETE", "/v2/pods/{other}", None),
        ("POST", "/v2/pods/{other}/action", {"action": "stop"}),
        ("POST", "/v2/pods/{own}/action", {"action": "restart"}),
        ("POST", "/v2/pods/{own}/action", {}),
        ("PATCH", "/v2/pods/{own}", {"args": "sleep 1"}),
        ("GET", "/v2/pods/{own}/logs", None),
        ("GET", "/v2/pods", None),
        ("POST", "/v2/pods", {"name": "more", "image": "ubuntu:22.04", "gpu": {"id": A4000, "count": 1}}),
        ("GET", "/v2/billing", None),
        ("GET", "/v1/pods/{other}", None),
        ("DELETE", "/v1/pods/{other}", None),
        ("POST", "/v1/pods/{other}/stop", None),
        ("POST", "/v1/pods/{own}/restart", None),
        ("PATCH", "/v1/pods/{own}", {"name": "mine"}),
        ("GET", "/v1/pods", None),
        ("POST", "/v1/pods", {"name": "more", "imageName": "ubuntu:22.04", "gpuTypeIds": [A4000]}),
    ],
)
async def test_a_pods_key_opens_nothing_else_over_rest(pods: Pods, method: str, path: str, body: Any) -> None:
    own, key, other = await two(pods)
    before = await pods.truth()
    answer = await pods.call(method, path.format(own=own, other=other), body, key=key)
    assert answer.status == 403, answer.raw
    assert (await pods.truth())["contracts"] == before["contracts"]


@pytest.mark.parametrize("query", [SHOW, STOP, START, BID_START, END, EDIT, MYSELF, RENT])
async def test_a_pods_key_opens_nothing_else_over_graphql(pods: Pods, query: str) -> None:
    own, key, other = await two(pods)
    before = await pods.truth()
    # Its own pod may not be edited either; the account's questions name none.
    answer = await asked(pods, key, query, own if query == EDIT else other)
    (error,) = answer["errors"]
    assert (error["message"], error["extensions"]["code"]) == ("Unauthorized", "RUNPOD")
    assert set(answer["data"].values()) == {None}
    assert (await pods.truth())["contracts"] == before["contracts"]


@pytest.mark.parametrize("path", ["/v2/pods/{}/action", "/v1/pods/{}/stop"])
async def test_a_stop_by_the_pods_own_key_looks_like_one_by_hand(pods: Pods, path: str) -> None:
    own, key, other = await two(pods)
    body = {"action": "stop"} if path.endswith("action") else None
    assert (await pods.call("POST", path.format(own), body, key=key)).status == 200
    assert (await pods.call("POST", path.format(other), body)).status == 200
    question = "query One($id: String!) { pod(input: {podId: $id}) { lastStatusChange desiredStatus readableStatus } }"
    shown = [await pods.ask(question, {"id": each}) for each in (own, other)]
    assert shown[0] == shown[1]
    assert shown[0]["pod"]["lastStatusChange"].startswith("Exited by user: ")
