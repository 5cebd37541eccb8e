"""RunPod's recorded answers, where they are at hand (GPUBID_RECORDED names their folder); elsewhere skipped aloud."""

import json
import os
import pathlib
from datetime import UTC, datetime
from typing import Any

import pytest

from agent.domain import money
from agent.markets import market_errors, transport
from agent.markets.runpod import graph, history, names, refusals

_FOLDER = os.environ.get("GPUBID_RECORDED", "")
pytestmark = pytest.mark.skipif(
    not _FOLDER, reason="GPUBID_RECORDED does not name the folder of recordings: the comparison with them did not run"
)


def read(name: str) -> Any:
    return json.loads((pathlib.Path(_FOLDER) / "runpod" / name).read_text(encoding="utf-8"))


def shape(when: str) -> transport.Reply:
    found = next(one for one in read("error_shapes.json") if when in one["when"])
    return transport.Reply(found["http"], {}, json.dumps(found["body"]).encode())


def test_recorded_refusals_prove_what_they_say() -> None:
    with pytest.raises(market_errors.Rejected) as caught:
        graph.done(shape("no capacity (create)"))
    assert caught.value.reason == "no_capacity"
    with pytest.raises(graph.Retired):
        graph.done(shape("schema validation"))
    with pytest.raises(market_errors.Ambiguous):
        graph.done(shape("server failure"))
    with pytest.raises(market_errors.Unauthorized):
        graph.answer(shape("pod-scoped key"))
    v2 = [one for one in read("error_shapes.json") if one["api"] == "rest-v2"]
    for one in v2:
        with pytest.raises(market_errors.Rejected) as caught:
            refusals.check_write(
                refusals.Route.CREATE, transport.Reply(one["http"], {}, json.dumps(one["body"]).encode())
            )
        assert caught.value.reason == "no_capacity"
    v1 = [one["body"]["error"] for one in read("error_shapes.json") if one["api"] == "rest-v1"]
    assert [refusals.of_words(text) for text in v1] == ["not_sold", "no_capacity", "no_capacity"]


def test_the_recorded_pod() -> None:
    (path,) = pathlib.Path(_FOLDER, "runpod").glob("pod_graphql_real_*.json")
    answered = graph.Answered({"myself": {"pods": [read(path.name)]}}, transport.Reply(200, {}, b""), "")
    (pod,) = history.pods(answered).values()
    assert (pod.is_interruptible, pod.rate) == (False, money.per_hour("0.49"))
    assert pod.change == ("started", datetime(2026, 8, 20, 3, 29, 12, tzinfo=UTC))


def test_a_recorded_model_has_one_name_in_the_catalogue_and_on_a_pod() -> None:
    for path in pathlib.Path(_FOLDER, "runpod").glob("gpuTypes_*.json"):
        rows = [row for row in read(path.name) if row["id"] != "unknown"]
        assert len(rows) > 30
        differing = {row["id"] for row in rows if names.model(row["displayName"]) != names.model(row["id"])}
        assert differing == set()
