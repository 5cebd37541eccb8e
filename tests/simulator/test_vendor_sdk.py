"""The vendor's Python package, class `VastAI`, works against the simulator unmodified."""

import json
import pathlib

import pytest

from tests.support.market import Market
from tests.support.vendor import Vendor

PROGRAM = """
import json, os
from vastai import VastAI

market = VastAI(api_key=os.environ["VAST_API_KEY"], server_url=os.environ["VAST_URL"], retry=1)
said = {}
query = "num_gpus=1 gpu_frac=1"
offers = market.search_offers(query=query, type="bid", order="dph_total", limit=5)
said["offer"] = offers[0]["id"]
bid = round(offers[0]["min_bid"] * 1.2, 4)
said["bid"] = bid
made = market.create_instance(id=offers[0]["id"], image="ubuntu:22.04", disk=16, bid_price=bid, label="sdk")
number = made["new_contract"]
said["made"] = made
said["listed"] = [row["id"] for row in market.show_instances()]
said["shown"] = market.show_instance(id=number)["is_bid"]
market.change_bid(id=number, price=round(bid * 1.5, 4))
market.label_instance(id=number, label="sdk2")
market.stop_instance(id=number)
market.start_instance(id=number)
said["logs"] = market.logs(instance_id=number)
said["executed"] = market.execute(id=number, command="ls")
said["credit"] = market.show_user()["credit"]
market.destroy_instance(id=number)
print(json.dumps(said))
"""


async def test_a_life_from_search_to_destroy(market: Market, tmp_path: pathlib.Path) -> None:
    ran = await Vendor(market.simulator.vast_url, tmp_path).python(PROGRAM)
    assert ran.code == 0, ran.err
    said = json.loads(ran.out.splitlines()[-1])
    truth = await market.truth()
    (contract,) = truth["contracts"]
    assert said["made"]["success"] is True
    assert said["made"]["new_contract"] == contract["id"]
    assert said["listed"] == [contract["id"]]
    assert said["shown"] is True
    assert said["credit"] == pytest.approx(truth["credit"])
    assert contract["label"] == "sdk2"
    assert contract["bid"] == pytest.approx(round(said["bid"] * 1.5, 4))
    assert contract["ended"] is not None
    assert {call["status"] for call in truth["calls"]} == {200}
