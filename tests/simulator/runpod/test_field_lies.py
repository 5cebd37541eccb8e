"""Field lies of RunPod over real connections: the answer changes, the truth never does."""

from typing import Any

import pytest

from tests.support.pods import A4000, Pods


async def pod(pods: Pods, name: str = "ours") -> str:
    body = {"name": name, "image": "ubuntu:22.04", "gpu": {"id": A4000, "count": 1}, "cloud": "SECURE", "disk": 20}
    answer = await pods.call("POST", "/v2/pods", body)
    assert answer.status == 201, answer.raw
    return str(answer.body["id"])


async def lie(pods: Pods, field: str, how: str = "set", **more: Any) -> None:
    await pods.weather("field_lie", field=field, how=how, **more)


async def test_pods_are_lied_about(pods: Pods) -> None:
    made = await pod(pods)
    true = (await pods.call("GET", f"/v2/pods/{made}")).body
    for field, key, value in [
        ("id", "id", "another"),
        ("label", "name", "a neighbour's"),
        ("price", "cost", "free"),
        ("state", "status", "LEVITATING"),
        ("host", "dataCenterId", "XX-1"),
        ("gpu.count", "gpu", 7),
    ]:
        await lie(pods, field, value=value, route="GET /v2/pods", instance=made, count=2)
        said = {"id": A4000, "count": 7} if key == "gpu" else value
        assert (await pods.call("GET", f"/v2/pods/{made}")).body == {**true, key: said}
        assert (await pods.call("GET", "/v2/pods")).body == {"pods": [{**true, key: said}]}
    assert (await pods.call("GET", "/v2/pods")).body == {"pods": [true]}


async def test_graphql_the_catalogue_and_pages_are_lied_about(pods: Pods) -> None:
    await pod(pods)
    question = "query { myself { pods { id name costPerHr desiredStatus } } }"
    await lie(pods, "price", "times", value=1000, count=1)
    told = (await pods.ask(question))["myself"]["pods"][0]
    assert told["costPerHr"] == pytest.approx(1000 * (await pods.ask(question))["myself"]["pods"][0]["costPerHr"])
    true = (await pods.call("GET", "/v2/catalog/gpus")).body["gpus"][0]["price"]["secure"]
    await lie(pods, "price", "times", value=0.1, count=1)
    assert (await pods.call("GET", "/v2/catalog/gpus")).body["gpus"][0]["price"]["secure"] == pytest.approx(true * 0.1)
    await lie(pods, "next_cursor", value="more", route="GET /v2/pods", count=1)
    assert (await pods.call("GET", "/v2/pods")).body["nextCursor"] == "more"
    await lie(pods, "rows", "twice", route="GET /v2/pods", count=1)
    rows = (await pods.call("GET", "/v2/pods")).body["pods"]
    assert len(rows) == 2
    assert rows[0] == rows[1]


async def test_lists_come_in_pages_that_are_followed_by_their_cursor(pods: Pods) -> None:
    made = [await pod(pods, f"pod-{number}") for number in range(3)]
    await pods.weather("paged_list", rows=2)
    first = (await pods.call("GET", "/v2/pods")).body
    last = (await pods.call("GET", "/v2/pods", cursor=first["nextCursor"])).body
    assert [row["id"] for row in first["pods"] + last["pods"]] == made
    assert "nextCursor" not in last
    assert (await pods.call("GET", "/v2/pods", cursor="junk")).status == 400


async def test_without_weather_a_page_is_as_long_as_asked(pods: Pods) -> None:
    for number in range(2):
        await pod(pods, f"pod-{number}")
    assert len((await pods.call("GET", "/v2/pods", limit="1")).body["pods"]) == 1
    assert "nextCursor" not in (await pods.call("GET", "/v2/pods")).body


@pytest.mark.parametrize(
    ("how", "value", "said"),
    [
        ("times", 1000, lambda true: true * 1000),
        ("times", 0.1, lambda true: true * 0.1),
        ("string", None, str),
        ("missing", None, lambda _: None),
    ],
)
async def test_a_price_is_lied_about_as_on_the_other_market(pods: Pods, how: str, value: Any, said: Any) -> None:
    await pod(pods)
    true = (await pods.call("GET", "/v2/pods")).body["pods"][0]["cost"]
    await lie(pods, "price", how, value=value, route="GET /v2/pods", count=1)
    row = (await pods.call("GET", "/v2/pods")).body["pods"][0]
    assert row.get("cost") == said(true)


async def test_nan_is_sent_as_no_json_has_it(pods: Pods) -> None:
    await pod(pods)
    await lie(pods, "price", "nan", route="GET /v2/pods", count=1)
    assert b'"cost":NaN' in (await pods.call("GET", "/v2/pods")).raw.replace(b": ", b":")


@pytest.mark.parametrize("said", [0, 31_536_000, "inf", "soon"])
async def test_date_and_retry_after_say_anything(pods: Pods, said: Any) -> None:
    await lie(pods, "date", "set", value="yesterday", count=1)
    assert (await pods.call("GET", "/v2/pods")).headers["Date"] == "yesterday"
    await pods.weather("throttle_retry_after", retry_after=said, count=1)
    answer = await pods.call("GET", "/v2/pods")
    assert (answer.status, answer.headers["Retry-After"]) == (429, str(said))


async def test_a_person_edits_a_label(pods: Pods) -> None:
    made = await pod(pods)
    await pods.weather("label_edit", label="a person's", seconds=60)
    assert (await pods.call("GET", f"/v2/pods/{made}")).body["name"] == "a person's"
