import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.domain import money
from agent.domain.market.instance import InstanceState
from agent.domain.market.tenure import Tenure
from agent.markets import market_errors, tolerant_rows
from agent.markets.vast import parse
from tests.markets.wire import PAYLOADS, payload

NOW = datetime(2026, 11, 5, tzinfo=UTC)


def raw(name: str) -> bytes:
    return (PAYLOADS / f"{name}.json").read_bytes()


def only(**changes: Any) -> bytes:
    """A search with one good row, changed."""
    return json.dumps({"offers": [payload("offers_on_demand")["offers"][0] | changes]}).encode()


def listing(**changes: Any) -> bytes:
    """A listing with one good row, changed; `...` takes a field away."""
    row = payload("instances")["instances"][0] | changes
    row = {name: value for name, value in row.items() if value is not ...}
    return json.dumps({"success": True, "instances": [row], "next_token": None}).encode()


def test_a_row_becomes_an_offer() -> None:
    offer = parse.offers(raw("offers_on_demand"), NOW)[0]
    assert (offer.market, offer.offer_id, offer.host_id, offer.owner_id) == ("vast", "31000001", "5101", "7001")
    assert (offer.gpu, offer.gpus, offer.vram_mb, offer.dlperf) == ("RTX 3090 TI", 1, 24576, 47.25)
    assert (offer.reliability, offer.is_verified, offer.region) == (0.9954, True, "Oregon, US")
    assert (offer.inet_down_mbps, offer.inet_up_mbps, offer.disk_gb) == (812.7, 640.2, 812.5)
    assert offer.ask == money.per_hour("0.252")
    assert offer.storage_micros_per_gb_month == 200_000
    assert (offer.traffic_down_micros_per_gb, offer.traffic_up_micros_per_gb) == (2604, 3906)
    assert (offer.ends_at, offer.seen_at) == (datetime(2026, 12, 4, tzinfo=UTC), NOW)


def test_a_floor_is_rounded_up() -> None:
    assert parse.offers(raw("offers_on_demand"), NOW)[0].floor == money.UsdPerHour(66_667)


def test_disks_unrentable_rows_and_doubles_are_no_offers() -> None:
    harvest = parse.harvest(raw("offers_on_demand"), NOW)
    assert [offer.offer_id for offer in harvest.offers] == ["31000001", "31000002"]
    assert (harvest.rows, harvest.dropped) == (5, 0)


def test_a_floor_above_the_ask_is_kept_as_it_is() -> None:
    offer = parse.offers(raw("offers_on_demand"), NOW)[1]
    assert offer.ask is not None
    assert offer.floor is not None
    assert (offer.floor.dollars, offer.ask.dollars) == (0.28, 0.253333)


def test_an_absurd_end_of_listing_is_none() -> None:
    assert parse.offers(only(end_date=4071532194.0), NOW)[0].ends_at is None
    assert parse.offers(only(end_date=-5), NOW)[0].ends_at is None
    assert parse.offers(only(end_date=1e18), NOW)[0].ends_at is None


def test_duration_is_not_read() -> None:
    """It is seconds left in the answer, age in the vendor's program, and the length of a rental to people."""
    assert parse.offers(only(duration=1.0), NOW) == parse.offers(only(duration=1e9), NOW)
    rows = [parse.page(listing(duration=seconds)).instances[0] for seconds in (1.0, 1e9)]
    assert parse.instance(rows[0]) == parse.instance(rows[1])


def test_numbers_may_be_strings_or_null() -> None:
    offer = parse.offers(raw("offers_as_strings"), NOW)[0]
    assert (offer.offer_id, offer.gpus, offer.vram_mb, offer.disk_gb, offer.region) == ("31000011", 1, 24564, 100.0, "")
    assert (offer.ask, offer.floor) == (money.per_hour("0.3"), money.per_hour("0.2"))
    assert (offer.traffic_down_micros_per_gb, offer.traffic_up_micros_per_gb) == (10_000, 0)


def test_spoilt_rows_are_dropped_one_by_one_and_counted() -> None:
    harvest = parse.harvest(raw("offers_spoilt"), NOW)
    assert [offer.offer_id for offer in harvest.offers] == ["1", "16", "18"]
    assert (harvest.rows, harvest.dropped) == (19, 16)
    assert harvest.offers[1].floor is None


def test_a_bid_search_may_round_its_price_to_nothing_and_still_names_its_floor() -> None:
    offer = parse.harvest(only(dph_base=0.0, min_bid=0.004), NOW, is_bid_search=True).offers[0]
    assert (offer.ask, offer.floor) == (None, money.UsdPerHour(4_000))


def test_an_ask_beside_a_floor_of_nothing_is_an_offer_without_a_floor() -> None:
    (offer,) = parse.offers(only(dph_base=0.4, min_bid=0.0), NOW)
    assert (offer.ask, offer.floor) == (money.per_hour("0.4"), None)
    assert parse.harvest(only(dph_base=0.4, min_bid=0.0), NOW, is_bid_search=True).offers == []


def test_in_a_bid_search_the_ask_is_unknown() -> None:
    offer = parse.harvest(only(dph_base=0.06666666666666667), NOW, is_bid_search=True).offers[0]
    assert (offer.ask, offer.floor) == (None, money.UsdPerHour(66_667))


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"offers":null}', b'{"offers":[', b'{"x":1}', b"[" * 99_999])
def test_what_is_no_search_is_malformed(body: bytes) -> None:
    with pytest.raises(market_errors.Malformed):
        parse.harvest(body, NOW)


@given(st.floats(0.000001, 10_000.0))
def test_fast_money_agrees_with_exact_money(dollars: float) -> None:
    offer = parse.offers(only(dph_base=dollars, min_bid=dollars), NOW)[0]
    assert offer.ask is not None
    assert offer.floor is not None
    assert abs(offer.ask.micros - money.per_hour(dollars).micros) <= (0 if dollars < 1000 else 1)
    # Exact rounding up may be one micro-dollar dearer for a figure that a binary fraction misses by a trillionth.
    assert 0 <= money.per_hour_up(dollars).micros - offer.floor.micros <= 1
    assert offer.floor.micros >= dollars * 1e6 - 1e-5


@given(st.text(max_size=500))
def test_any_text_comes_out_short_and_printable(text: str) -> None:
    offer = parse.offers(only(geolocation=text, gpu_name=text), NOW)[0]
    instance = parse.instance(parse.page(listing(status_msg=text, label=text)).instances[0])
    for shown in (offer.region, offer.gpu, instance.message, instance.label):
        assert shown.isprintable()
        assert len(shown) <= 260


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_any_value_in_any_place_is_survived(value: Any) -> None:
    for field in ("dph_base", "min_bid", "num_gpus", "end_date", "gpu_name", "rentable", "id"):
        assert parse.harvest(only(**{field: value}), NOW).rows == 1


def test_the_listing_becomes_instances() -> None:
    page = parse.page(raw("instances"))
    running, stopped, exited = (parse.instance(row) for row in page.instances)
    assert [one.instance_id for one in (running, stopped, exited)] == ["52000001", "52000002", "52000003"]
    assert (running.state, stopped.state, exited.state) == (
        InstanceState.RUNNING,
        InstanceState.PAUSED,
        InstanceState.EXITED,
    )
    assert (running.tenure, exited.tenure) == (Tenure.INTERRUPTIBLE, Tenure.ON_DEMAND)
    assert (running.label, stopped.label) == ("gpubid:0123456789ab:train:0:0123456789abcdef", "")
    assert (running.host_id, running.owner_id, exited.owner_id) == ("5101", "7001", "")
    assert (running.traffic_down_gb, running.traffic_up_gb, stopped.traffic_down_gb) == (3.5, 0.25, 0.0)
    assert (running.traffic_down_micros_per_gb, running.traffic_up_micros_per_gb) == (2604, 3906)
    assert (running.address, stopped.address, exited.address) == ("ssh4.vast.ai:15001", "203.0.113.58", "")
    assert (running.created_at, stopped.ends_at) == (datetime(2026, 11, 5, 0, 0, 0, 250_000, UTC), None)
    assert (running.is_wanted_running, stopped.is_wanted_running, running.gpu_util) == (True, False, 97.0)


def test_the_bid_is_dph_base_and_the_disk_comes_on_top() -> None:
    running, stopped, exited = (parse.instance(row) for row in parse.page(raw("instances")).instances)
    assert running.bid == money.UsdPerHour(21_333)
    assert (running.disk_rate, running.floor) == (money.UsdPerHour(1926), money.UsdPerHour(9334))
    # Without the market's own figure: dollars per gigabyte and month of 720 hours.
    assert stopped.disk_rate == money.per_hour(0.15 * 24 / 720)
    assert (exited.bid, exited.gpu_rate, exited.gpus, exited.disk_gb) == (None, money.per_hour(16), 8, 72.0)


@pytest.mark.parametrize(
    ("changes", "dollars"),
    [
        ({}, 0.6),
        # Whether `dph_base` contains the discount is not documented: the higher reading counts.
        ({"search": {"diskHour": 0.01, "discountedTotalPerHour": 0.81}}, 0.8),
        ({"search": {"diskHour": 0.01, "discountedTotalPerHour": 0.11}}, 0.6),
        ({"search": {"diskHour": 0.01, "discountedTotalPerHour": 9.0}}, 1.0),
        # A figure that is missing, absurd or not a deposit's is no discount.
        ({"credit_discount": None}, 1.0),
        ({"credit_discount": ...}, 1.0),
        ({"credit_discount": 0.0}, 1.0),
        ({"credit_discount": 1.0}, 1.0),
        ({"credit_discount": -0.5}, 1.0),
        ({"credit_discount": math.nan}, 1.0),
        ({"credit_discount": "much"}, 1.0),
        ({"search": None}, 1.0),
        ({"search": "cheap"}, 1.0),
        ({"search": {"diskHour": 0.01}}, 1.0),
        ({"search": {"diskHour": math.nan, "discountedTotalPerHour": 0.61}}, 1.0),
        ({"search": {"diskHour": 0.7, "discountedTotalPerHour": 0.61}}, 1.0),
        ({"is_bid": True}, 1.0),
        ({"is_bid": None}, 1.0),
    ],
    ids=str,
)
def test_a_rate_on_demand_is_less_the_discount_of_a_deposit(changes: dict[str, Any], dollars: float) -> None:
    prepaid: dict[str, Any] = {"dph_base": 1.0, "is_bid": False, "credit_discount": 0.4}
    prepaid |= {"search": {"diskHour": 0.01, "discountedTotalPerHour": 0.61}}
    (row,) = parse.page(listing(**prepaid | changes)).instances
    assert parse.instance(row).gpu_rate.dollars == pytest.approx(dollars)


@pytest.mark.parametrize(
    ("changes", "dollars"),
    [
        ({}, 0.5),
        # One of three figures is wrong: the other two agree.
        ({"dph_base": 0.0005}, 0.5),
        ({"dph_base": 0.0}, 0.5),
        ({"dph_base": 1000.0}, 0.5),
        ({"dph_total": 0.3}, 0.5),
        ({"dph_total": math.nan}, 0.5),
        ({"storage_total_cost": 0.2}, 0.5),
        ({"search": {"gpuCostPerHour": 0.1}}, 0.5),
        # Nothing agrees with anything, or there are no three figures: the market's own word for it counts.
        ({"dph_base": 0.1, "dph_total": 0.3}, 0.1),
        ({"dph_base": 0.1, "search": None}, 0.1),
        ({"dph_base": 0.1, "dph_total": None}, 0.1),
        ({"dph_base": 0.1, "storage_total_cost": ...}, 0.1),
        ({"dph_base": 0.1, "search": {"gpuCostPerHour": math.nan}}, 0.1),
        ({"dph_base": 0.1, "search": {"gpuCostPerHour": -0.5}, "dph_total": -0.49}, 0.1),
    ],
    ids=str,
)
@pytest.mark.parametrize("is_bid", [True, False])
def test_a_price_that_two_other_figures_contradict_is_not_read(
    changes: dict[str, Any], dollars: float, *, is_bid: bool
) -> None:
    told: dict[str, Any] = {"dph_base": 0.5, "dph_total": 0.51, "storage_total_cost": 0.01, "is_bid": is_bid}
    told |= {"search": {"gpuCostPerHour": 0.5, "diskHour": 0.01, "discountedTotalPerHour": 0.51}}
    (row,) = parse.page(listing(**told | changes)).instances
    assert parse.instance(row).gpu_rate.dollars == pytest.approx(dollars)


@pytest.mark.parametrize(
    ("changes", "dollars"),
    [
        ({}, 0.01),
        ({"storage_total_cost": 10.0}, 0.01),
        ({"storage_total_cost": 0.0}, 0.01),
        ({"dph_total": 9.0}, 0.01),
        ({"dph_base": 9.0}, 0.01),
        ({"search": {"diskHour": 9.0}}, 0.01),
        ({"storage_total_cost": 10.0, "dph_total": None}, 10.0),
        ({"storage_total_cost": 10.0, "search": None}, 10.0),
    ],
    ids=str,
)
def test_a_disk_price_that_two_other_figures_contradict_is_not_read(changes: dict[str, Any], dollars: float) -> None:
    told: dict[str, Any] = {"dph_base": 0.5, "dph_total": 0.51, "storage_total_cost": 0.01}
    told |= {"search": {"gpuCostPerHour": 0.5, "diskHour": 0.01}}
    (row,) = parse.page(listing(**told | changes)).instances
    assert parse.instance(row).disk_rate.dollars == pytest.approx(dollars)


def test_a_price_that_is_missing_is_not_made_up() -> None:
    told: dict[str, Any] = {"dph_base": None, "dph_total": 0.51, "storage_total_cost": 0.01}
    (row,) = parse.page(listing(**told, search={"gpuCostPerHour": 0.5})).instances
    assert "gpu_rate" in parse.instance(row).unread


def test_a_message_is_one_printable_line() -> None:
    assert parse.instance(parse.page(raw("instances")).instances[2]).message == "Error [31mboom end"


@pytest.mark.parametrize("number", [..., None, "x", -0.5, {}, [1]], ids=str)
def test_a_row_without_a_readable_id_refuses_the_listing(number: Any) -> None:
    with pytest.raises(market_errors.Malformed):
        parse.page(listing(id=number))


@pytest.mark.parametrize(
    ("changes", "unread"),
    [
        ({"machine_id": ...}, {"host_id"}),
        ({"machine_id": "x"}, {"host_id"}),
        ({"is_bid": ...}, {"tenure"}),
        ({"is_bid": None}, {"tenure"}),
        ({"is_bid": "perhaps"}, {"tenure"}),
        ({"dph_base": ...}, {"gpu_rate"}),
        ({"dph_base": None}, {"gpu_rate"}),
        ({"dph_base": "free"}, {"gpu_rate"}),
        ({"dph_base": -0.1}, {"gpu_rate"}),
        ({"dph_base": 1e9}, {"gpu_rate"}),
        ({"dph_base": "nan"}, {"gpu_rate"}),
        ({"dph_base": math.nan}, {"gpu_rate"}),
        ({"dph_base": math.inf}, {"gpu_rate"}),
        ({"dph_base": {"each": 1}}, {"gpu_rate"}),
        ({"storage_total_cost": -1.0, "storage_cost": None}, {"disk_rate"}),
        ({"storage_total_cost": "inf", "disk_space": math.nan}, {"disk_rate", "disk_gb"}),
        ({"num_gpus": -1}, {"gpus"}),
        ({"num_gpus": None}, {"gpus"}),
        ({"disk_space": "nan"}, {"disk_gb"}),
        ({"inet_down_billed": math.nan}, set()),
        ({"min_bid": -0.5}, set()),
        ({"dlperf": "much"}, set()),
        ({"gpu_util": [], "ports": 5, "label": 7, "status_msg": {}, "reliability2": "?"}, set()),
    ],
    ids=lambda given: str(given) if isinstance(given, dict) else "",
)
def test_a_row_stays_although_a_figure_of_it_cannot_be_read(changes: dict[str, Any], unread: set[str]) -> None:
    (row,) = parse.page(listing(**changes)).instances
    found = parse.instance(row)
    assert found.unread == unread
    good = parse.instance(parse.page(listing()).instances[0])
    assert (found.instance_id, found.state) == (good.instance_id, good.state)
    one = json.dumps({"instances": json.loads(listing(**changes))["instances"][0]}).encode()
    assert parse.instance(parse.one(one, found.instance_id)) == found
    for name in ("gpu_rate", "disk_rate", "disk_gb", "host_id", "gpus"):
        assert getattr(found, name) == getattr(good, name) or name in unread
        assert not (name in unread and getattr(found, name) and getattr(found, name) != money.FREE)


@pytest.mark.parametrize("field", ["actual_status", "cur_state"])
@pytest.mark.parametrize("said", [..., 5, "levitating"])
def test_a_state_that_is_missing_or_no_word_is_ignorance(field: str, said: Any) -> None:
    assert parse.instance(parse.page(listing(**{field: said})).instances[0]).state is InstanceState.UNKNOWN


def test_traffic_is_counted_once_its_price_can_be_read() -> None:
    (row,) = parse.page(listing(inet_down_billed=2048.0, inet_down_cost=math.nan)).instances
    assert (parse.instance(row).traffic_down_gb, parse.instance(row).traffic_down_micros_per_gb) == (0.0, 0)


@pytest.mark.parametrize("token", [5, True, ["more"], {}], ids=str)
def test_a_token_that_cannot_be_read_ends_no_listing(token: Any) -> None:
    with pytest.raises(market_errors.Malformed):
        parse.page(json.dumps({**json.loads(listing()), "next_token": token}).encode())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"null",
        b'{"instances":null}',
        b'{"success":false,"instances":[]}',
        b'{"instances":[]',
        b"[" * 99_999,
    ],
)
def test_what_is_no_page_is_malformed(body: bytes) -> None:
    with pytest.raises(market_errors.Malformed):
        parse.page(body)


def test_null_for_an_id_means_that_there_is_none() -> None:
    with pytest.raises(market_errors.NotFound):
        parse.one(b'{"instances": null}', "5")


@pytest.mark.parametrize(
    "body", [b"{}", b'{"success":true}', b'{"instances":[]}', b'{"instances":{}}', b"", b'{"instance":null}']
)
def test_anything_less_than_null_does_not(body: bytes) -> None:
    with pytest.raises(market_errors.Malformed):
        parse.one(body, "5")


def test_the_record_of_another_instance_is_refused() -> None:
    body = json.dumps({"instances": payload("instances")["instances"][0]}).encode()
    assert parse.one(body, "52000001").id == 52000001
    with pytest.raises(market_errors.Malformed):
        parse.one(body, "52000009")


PAGE = b"\n<!DOCTYPE html><html><body>Log in</body></html>"


@pytest.mark.parametrize(("body", "said"), [(PAGE, "is a web page, not JSON; check `url`"), (b"{", "is no JSON (")])
def test_a_web_page_in_place_of_an_answer_is_called_one(body: bytes, said: str) -> None:
    for read in (
        lambda: parse.harvest(body, NOW),
        lambda: parse.page(body),
        lambda: tolerant_rows.bare_rows(body, "The listing"),
    ):
        with pytest.raises(market_errors.Malformed) as caught:
            read()
        assert said in str(caught.value)
