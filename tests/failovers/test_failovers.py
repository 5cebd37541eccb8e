"""Ten failovers over real processes, and the check of the market's log that judges all of them."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.failovers import history, judgement, stages, unjournaled
from tests.failovers.history import Ordered
from tests.failovers.rig import ROUNDS, rig
from tests.support import network, postgres
from tests.support.engines import database

__all__ = ["database"]
SENT = Ordered("a" * 16, "rent", "7", "", sent_seconds=1000.0)
LABEL = f"gpubid:0123456789ab:train:0:{SENT.intent_id}"


def put(path: str, time: float = 1001.0) -> Mapping[str, Any]:
    return {"method": "PUT", "path": f"/api/v0{path}", "time": time, "status": 200}


def delete(path: str, time: float = 1001.0) -> Mapping[str, Any]:
    return {**put(path, time), "method": "DELETE"}


def order(kind: str, sent_seconds: float | None = 1000.0) -> Ordered:
    return Ordered("b" * 16, kind, "", "9", sent_seconds)


@pytest.mark.skipif(not postgres.is_here(), reason="PostgreSQL is not installed (make tools)")
@pytest.mark.long(40)
@pytest.mark.nightly
@pytest.mark.parametrize("number", [0, 2])
async def test_five_leaders_die_and_nothing_is_ordered_twice(tmp_path: Path, database: str, number: int) -> None:
    pytest.importorskip("psycopg")
    async with rig(tmp_path, database) as made:
        for step, kind in ROUNDS[number]:
            await made.fail(step, kind)
        assert judgement.wrong(await made.end()) == []


@pytest.mark.nightly
@pytest.mark.skipif(not postgres.is_here(), reason="PostgreSQL is not installed (make tools)")
@pytest.mark.parametrize("way", stages.WAYS)
async def test_a_lead_passes_in_another_way_and_nothing_is_ordered_twice(tmp_path: Path, way: str) -> None:
    pytest.importorskip("psycopg")
    if way == "cut" and not network.is_allowed():
        pytest.skip("network namespaces need root")
    chance = Random(1)
    async with stages.WAYS[way](tmp_path, 0) as (made, once):
        for _ in range(2):
            passed = await once(chance)
            assert not passed.wrong
        assert judgement.wrong(await made.end()) == []


def test_what_was_ordered_once_is_right() -> None:
    calls = [
        *(put("/asks/7/"), put("/instances/bid_price/9/"), {**put("/asks/8/"), "method": "GET"}),
        *(put("/instances/9/", 2030.0), put("/instances/9/", 2100.0), delete("/instances/9/", 9000.0)),
    ]
    orders = [SENT, *map(order, ("rebid", "release")), order("pause", 2000.0), order("resume", 2099.0)]
    assert history.wrong(calls, [{"label": LABEL}, {"label": "by hand"}], orders) == []


@pytest.mark.parametrize(
    ("calls", "contracts", "orders"),
    [
        ([put("/asks/7/"), put("/asks/7/")], [], [SENT]),
        ([put("/asks/8/")], [], [SENT]),
        ([put("/asks/7/", 900.0)], [], [SENT]),
        ([put("/asks/7/", 1000.0 + history.LATE_SECONDS + 1.0)], [], [SENT]),
        ([put("/asks/7/")], [], [dataclasses.replace(SENT, sent_seconds=None)]),
        ([put("/instances/bid_price/9/")], [], [SENT]),
        ([put("/instances/9/"), put("/instances/9/")], [], [order("resume")]),
        ([put("/instances/9/"), put("/instances/9/")], [], [order("pause"), order("resume", 5000.0)]),
        ([delete("/instances/9/", 900.0)], [], [order("release")]),
        ([delete("/instances/9/")], [], [order("pause")]),
        ([], [{"label": LABEL}, {"label": LABEL}], [SENT]),
        ([], [{"label": LABEL}], []),
    ],
)
def test_what_arrived_without_an_order_of_its_own_is_found(
    calls: list[Mapping[str, Any]], contracts: list[Mapping[str, Any]], orders: list[Ordered]
) -> None:
    assert len(history.wrong(calls, contracts, orders)) == 1


def said(event: str, kind: str, lease: str = "vast-9") -> str:
    return json.dumps({"event": event, "kind": kind, "lease": lease, "at": "2027-03-02T09:00:00.500+00:00"})


def test_a_release_without_the_ledger_may_be_followed_by_one_pause_only_if_the_market_did_not_take_it() -> None:
    at = 1_803_978_000.5
    lines = [
        *(said("intent.unjournaled", "release"), said("intent.unsent", "release", "vast-8"), "plain text"),
        *(said("intent.unjournaled", "release"), *[said("intent.unsent", "release")] * 2),
        *(said("intent.unjournaled", "pause"), said("intent.unsent", "pause")),
    ]
    kinds = ("release", "release", "pause", "pause")
    assert unjournaled.orders(lines) == [Ordered("", kind, "", "9", at) for kind in kinds]


def test_what_arrives_for_no_new_intent_was_sent_by_the_woken_leader() -> None:
    calls = [put("/asks/7/"), delete("/instances/9/")]
    assert history.late(calls, [SENT, order("release")]) == []
    assert len(history.late(calls, [SENT])) == 1
    assert len(history.late(calls, [])) == 2


def test_a_part_of_the_spend_that_differs_is_found() -> None:
    assert history.misspent({"disk": (0.104, 0.1), "bandwidth": (1.01, 1.0)}) == []
    assert len(history.misspent({"disk": (0.106, 0.1), "bandwidth": (0.97, 1.0)})) == 2
