"""Ten failovers over real processes, and the check of the market's log that judges all of them."""

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.failovers import history, stages
from tests.failovers.history import Ordered
from tests.failovers.rig import ROUNDS, rig
from tests.support import network, postgres
from tests.support.engines import database

__all__ = ["database"]
SENT = Ordered("a" * 16, "rent", "7", "", is_sent=True)
LABEL = f"gpubid:0123456789ab:train:0:{SENT.intent_id}"


def put(path: str) -> Mapping[str, Any]:
    return {"method": "PUT", "path": f"/api/v0{path}", "time": 1.0, "status": 200}


@pytest.mark.skipif(not postgres.is_here(), reason="PostgreSQL is not installed (make tools)")
@pytest.mark.long(40)
@pytest.mark.parametrize("number", [0, 2])
async def test_five_leaders_die_and_nothing_is_ordered_twice(tmp_path: Path, database: str, number: int) -> None:
    pytest.importorskip("psycopg")
    async with rig(tmp_path, database) as made:
        for step, kind in ROUNDS[number]:
            await made.fail(step, kind)
        assert await made.end() == []


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
        assert await made.end() == []


def test_what_was_ordered_once_is_right() -> None:
    raised = Ordered("b" * 16, "rebid", "", "9", is_sent=True)
    calls = [put("/asks/7/"), put("/instances/bid_price/9/"), {**put("/asks/8/"), "method": "GET"}]
    assert history.wrong(calls, [{"label": LABEL}, {"label": "by hand"}], [SENT, raised]) == []


@pytest.mark.parametrize(
    ("calls", "contracts", "intents"),
    [
        ([put("/asks/7/"), put("/asks/7/")], [], [SENT]),
        ([put("/asks/8/")], [], [SENT]),
        ([put("/asks/7/")], [], [Ordered(SENT.intent_id, "rent", "7", "", is_sent=False)]),
        ([put("/instances/bid_price/9/")], [], [SENT]),
        ([put("/instances/9/"), put("/instances/9/")], [], [Ordered("b" * 16, "resume", "", "9", is_sent=True)]),
        ([], [{"label": LABEL}, {"label": LABEL}], [SENT]),
        ([], [{"label": LABEL}], []),
    ],
)
def test_what_was_ordered_without_an_intent_of_its_own_is_found(
    calls: list[Mapping[str, Any]], contracts: list[Mapping[str, Any]], intents: list[Ordered]
) -> None:
    assert len(history.wrong(calls, contracts, intents)) == 1


def test_what_arrives_for_no_new_intent_was_sent_by_the_woken_leader() -> None:
    released = Ordered("c" * 16, "release", "", "9", is_sent=True)
    calls = [put("/asks/7/"), {**put("/instances/9/"), "method": "DELETE"}]
    assert history.late(calls, [SENT, released]) == []
    assert len(history.late(calls, [SENT])) == 1
    assert len(history.late(calls, [])) == 2


@pytest.mark.parametrize(
    ("ledger", "unseen", "is_right"),
    [(0.50, 0.0, True), (0.60, 0.0, False), (0.60, 0.1, True), (0.40, 0.1, False)],
)
def test_a_ledger_may_have_more_only_by_what_stopped_unseen(ledger: float, unseen: float, is_right: bool) -> None:
    charged = {"9": {"gpu": 0.5, "disk": 0.1, "bandwidth": 0.0}}
    spent = {"9": {"gpu": ledger, "disk": 0.1, "bandwidth": 0.0}}
    assert (history.misspent(charged, spent, unseen) == []) is is_right
