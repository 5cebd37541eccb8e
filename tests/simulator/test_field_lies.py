"""Field lies of Vast over real connections: the answer changes, the truth never does."""

import json
import math
from typing import Any

import pytest

from tests.support.market import Market

ROWS = "GET /instances"


async def rented(market: Market, count: int = 2) -> list[int]:
    rows = [row for row in await market.offers() if row["gpu_frac"] == 1.0][:count]
    return [await market.rented(row["id"], row["min_bid"] * 1.2, label=f"ours-{row['id']}") for row in rows]


async def lie(market: Market, field: str, how: str = "set", **more: Any) -> None:
    await market.weather("field_lie", field=field, how=how, **more)


@pytest.mark.parametrize(
    ("field", "how", "value", "key", "said"),
    [
        ("id", "set", 777, "id", lambda _: 777),
        ("label", "set", "a neighbour's", "label", lambda _: "a neighbour's"),
        ("label", "null", None, "label", lambda _: None),
        ("price", "times", 1000, "dph_base", lambda true: true * 1000),
        ("price", "times", 0.1, "dph_base", lambda true: true * 0.1),
        ("price", "string", None, "dph_base", str),
        ("price", "set", "cheap", "dph_base", lambda _: "cheap"),
        ("price", "inf", None, "dph_base", lambda _: math.inf),
        ("price", "minus", None, "dph_base", lambda true: -true),
        ("price", "missing", None, "dph_base", lambda _: "nothing at all"),
        ("state", "set", "levitating", "actual_status", lambda _: "levitating"),
        ("host", "plus", 1, "machine_id", lambda true: true + 1),
        ("cur_state", "set", "stopped", "cur_state", lambda _: "stopped"),
    ],
)
async def test_a_field_of_one_instance_is_lied_about(
    market: Market, field: str, how: str, value: Any, key: str, said: Any
) -> None:
    struck, spared = await rented(market)
    true = {row["id"]: row for row in await market.instances()}
    before = await market.truth()
    await lie(market, field, how, value=value, instance=struck, route=ROWS)
    rows = await market.instances()
    assert rows[0].get(key, "nothing at all") == said(true[struck][key])
    assert rows[1] == true[spared]
    one = dict((await market.call("GET", f"/instances/{struck}/")).body["instances"])
    assert one.get(key, "nothing at all") == said(true[struck][key])
    assert (await market.truth())["contracts"] == before["contracts"]


async def test_nan_is_sent_as_no_json_has_it(market: Market) -> None:
    await rented(market, 1)
    await lie(market, "price", "nan")
    raw = (await market.call("GET", "/api/v1/instances/")).raw
    assert b'"dph_base":NaN' in raw
    assert math.isnan(json.loads(raw)["instances"][0]["dph_base"])


async def test_a_lie_keeps_to_its_route_its_count_and_its_seconds(market: Market) -> None:
    (made,) = await rented(market, 1)
    price = (await market.instances())[0]["dph_base"]
    await lie(market, "price", value=9.0, route=ROWS, count=2)
    # A call in which there is nothing to lie about is not counted.
    await market.call("GET", "/users/current")
    await market.call("GET", "/instances/1/")
    assert [(await market.instances())[0]["dph_base"] for _ in range(3)] == [9.0, 9.0, price]
    await lie(market, "price", value=8.0, seconds=60)
    assert (await market.instance(made))["dph_base"] == 8.0
    await market.advance(60)
    assert (await market.instance(made))["dph_base"] == price


async def test_any_fault_may_be_counted(market: Market) -> None:
    await market.weather("html_403", count=2)
    statuses = [(await market.call("GET", "/users/current")).status for _ in range(3)]
    assert statuses == [403, 403, 200]
    assert (await market.truth())["weather"] == []


async def test_two_lies_blow_together(market: Market) -> None:
    await rented(market, 1)
    await lie(market, "price", value=9.0)
    await lie(market, "label", value="a neighbour's")
    (row,) = await market.instances()
    assert (row["dph_base"], row["label"]) == (9.0, "a neighbour's")


async def test_the_reply_to_a_rent_names_another_instance(market: Market) -> None:
    (neighbour,) = await rented(market, 1)
    await lie(market, "id", value=neighbour, route="PUT /asks", count=1)
    offer = await market.cheapest()
    assert await market.rented(offer["id"], 5.0) == neighbour
    assert len((await market.truth())["contracts"]) == 2


async def test_offers_are_lied_about(market: Market) -> None:
    true = await market.cheapest()
    await lie(market, "price", "times", value=0.001, instance=true["id"])
    false = await market.cheapest()
    assert false["id"] == true["id"]
    assert false["min_bid"] == pytest.approx(true["min_bid"] * 0.001)
    assert (await market.rent(true["id"], false["min_bid"] * 2)).body["success"] is False


@pytest.mark.parametrize(("how", "value", "said"), [("plus", 3600, "Thu, 05 Nov 2026 01:00:00 GMT"), ("set", "x", "x")])
async def test_the_date_lies(market: Market, how: str, value: Any, said: str) -> None:
    await lie(market, "date", how, value=value, count=1)
    assert (await market.call("GET", "/users/current")).headers["Date"] == said
    assert (await market.call("GET", "/users/current")).headers["Date"] == "Thu, 05 Nov 2026 00:00:00 GMT"


async def test_the_date_is_left_out(market: Market) -> None:
    await lie(market, "date", "missing")
    assert (await market.call("GET", "/users/current")).headers["Date"] == ""


@pytest.mark.parametrize("said", [0, 31_536_000, "inf", "soon"])
async def test_retry_after_says_anything(market: Market, said: Any) -> None:
    await market.weather("throttle_retry_after", retry_after=said, count=1)
    assert (await market.call("GET", "/users/current")).headers["Retry-After"] == str(said)
    await lie(market, "retry_after", value=said)
    answer = await market.call("GET", "/users/current")
    assert (answer.status, answer.headers["Retry-After"]) == (200, str(said))


async def test_a_further_page_is_announced_and_rows_come_twice(market: Market) -> None:
    await rented(market, 2)
    await lie(market, "next_cursor", value="more", route=ROWS, count=1)
    assert (await market.call("GET", "/api/v1/instances/")).body["next_token"] == "more"
    await lie(market, "rows", "twice", route=ROWS, count=1)
    rows = await market.instances()
    assert rows[:2] == rows[2:]
    await lie(market, "rows", "twice_changed", route=ROWS, count=1)
    one, other, again, changed = await market.instances()
    assert [again["id"], changed["id"]] == [one["id"], other["id"]]
    assert (again["actual_status"], again["dph_base"]) == ("unknown", one["dph_base"] * 2)


async def test_a_person_edits_a_label_and_puts_it_back(market: Market) -> None:
    struck, spared = await rented(market)
    labels = [row["label"] for row in await market.instances()]
    await market.weather("label_edit", contract_id=struck, seconds=60)
    assert [row["label"] for row in await market.instances()] == ["a person's", labels[1]]
    assert {row["id"]: row["label"] for row in (await market.truth())["contracts"]}[spared] == labels[1]
    assert {row["id"]: row["label"] for row in (await market.truth())["contracts"]}[struck] == "a person's"
    await market.advance(60)
    assert [row["label"] for row in await market.instances()] == labels
