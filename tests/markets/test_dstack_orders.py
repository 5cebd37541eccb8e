"""Orders at dstack: pinned to type, place, fleet and price, and refused before they leave if they cannot be meant."""

import dataclasses
import datetime as dt
import json
import os
import pathlib
import subprocess
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from agent.domain import money
from agent.domain.market.instance import InstanceState
from agent.domain.market.tenure import Tenure
from agent.domain.work.workload import Runtype
from agent.markets import market_errors
from agent.markets.dstack import names, orders
from agent.markets.dstack.vendor_record import DstackOptions, findings
from agent.markets.port import Login, Page, Terms
from agent.simulator.dstack import interpolation
from agent.simulator.dstack import world as server
from agent.simulator.dstack.model import Refused, Run
from tests.markets.bench_dstack import dstack_bench
from tests.markets.scene import LABEL, OFFER

ON_DEMAND = Terms(Tenure.ON_DEMAND, None, 40.0, "ubuntu:22.04", command="python train.py --name 'a b'")
OFFERED = msgspec.structs.replace(
    OFFER, market="dstack", offer_id="aws/us-east-1/l4-1x", host_id="pool/aws/us-east-1/l4-1x", vram_mb=24_576
)


def ordered(**changes: Any) -> dict[str, Any]:
    return orders.create(OFFERED, terms(**changes), LABEL, "gpubid")


def terms(**changes: Any) -> Terms:
    return dataclasses.replace(ON_DEMAND, **changes)


def test_an_order_is_pinned_in_every_way() -> None:
    order = ordered()
    told = order["configuration"]
    assert order["run_name"] == told["name"] == "g0123456789ab-0-0123456789abcdef"
    assert told["tags"] == {"gpubid": LABEL}
    assert (told["backends"], told["regions"], told["instance_types"]) == (["aws"], ["us-east-1"], ["l4-1x"])
    assert (told["retry"], told["idle_duration"], told["fleets"]) == (False, 0, ["gpubid"])
    assert told["spot_policy"] == "on-demand"
    assert told["max_price"] == pytest.approx(0.40, abs=1e-9)
    assert told["max_price"] >= 0.40
    assert (told["user"], told["resources"]["cpu"]["arch"]) == ("root", "x86")
    assert told["commands"] == ["exec python train.py --name 'a b'"]
    assert told["resources"]["gpu"] == {"count": {"min": 1, "max": 1}, "memory": {"min": 24.0, "max": None}}


def test_a_spot_machine_is_ordered_at_most_at_the_price_that_was_listed() -> None:
    spot = msgspec.structs.replace(OFFERED, host_id=f"{OFFERED.host_id}/spot", ask=None, floor=money.per_hour("0.15"))
    asked = terms(tenure=Tenure.INTERRUPTIBLE, bid=money.per_hour("0.15"))
    told = orders.create(spot, asked, LABEL, "gpubid")["configuration"]
    assert (told["spot_policy"], told["instance_types"]) == ("spot", ["l4-1x"])
    assert told["max_price"] == pytest.approx(0.15, abs=1e-9)
    with pytest.raises(market_errors.Rejected):
        orders.create(spot, ON_DEMAND, LABEL, "gpubid")


async def test_a_spot_machine_is_rented_lost_and_told_as_that() -> None:
    async with dstack_bench() as bench:
        (offer, *_) = await bench.offers(tenures=frozenset({Tenure.INTERRUPTIBLE}))
        asked = terms(tenure=Tenure.INTERRUPTIBLE, bid=offer.floor, command="")
        run_id = await bench.market.rent(offer, asked, LABEL)
        running = await bench.running(run_id)
        assert (running.tenure, running.gpu_rate, running.host_id) == (
            Tenure.INTERRUPTIBLE,
            offer.floor,
            offer.host_id,
        )
        bench.world.interrupt((await bench.contracts())[0]["machine_id"])
        (lost,) = await bench.market.instances()
        assert (lost.state, lost.message) == (InstanceState.OFFLINE, "interrupted by no capacity")


def test_a_page_that_tells_readiness_makes_a_service_that_the_server_probes() -> None:
    told = ordered(page=Page(8000, "/health"), ports=(8000,))["configuration"]
    assert (told["type"], told["port"], told["gateway"]) == ("service", 8000, False)
    assert [(probe["type"], probe["url"]) for probe in told["probes"]] == [("http", "/health")]
    assert "ports" not in told
    plain = ordered()["configuration"]
    assert (plain["type"], plain["ports"]) == ("task", [])


@pytest.mark.parametrize(
    ("every", "within", "asked"),
    [(0.0, 5.0, (15, 5)), (30.0, 20.0, (15, 20)), (10.0, 0.5, (10, 1)), (0.2, 1.2, (1, 2))],
)
def test_the_server_probes_at_the_pace_and_with_the_patience_of_the_workload(
    every: float, within: float, asked: tuple[int, int]
) -> None:
    page = Page(8000, "/health", dt.timedelta(seconds=within), dt.timedelta(seconds=every))
    (probe,) = ordered(page=page)["configuration"]["probes"]
    assert (probe["interval"], probe["timeout"]) == asked


async def test_the_servers_own_probe_is_what_is_known_of_a_page() -> None:
    async with dstack_bench() as bench:
        asked = terms(page=Page(8000, "/health"), environment=(("SIM_READY_AFTER", "60"), ("SIM_SILENT_AFTER", "300")))
        run_id = await bench.market.rent(await bench.offer(), asked, LABEL)
        running = await bench.running(run_id)
        assert running.page_answers is False
        await bench.simulated.advance(120)
        assert (await bench.market.instance(run_id)).page_answers is True
        await bench.simulated.advance(300)
        assert (await bench.market.instance(run_id)).page_answers is False


async def test_of_a_task_no_page_is_known() -> None:
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        assert (await bench.running(run_id)).page_answers is None


def test_variables_ports_login_and_key_go_with_it() -> None:
    told = ordered(
        environment=(("TOKEN", "s3cret"),),
        ports=(8000,),
        login=Login("ghcr.io", "me", "hidden"),
        ssh_keys=("ssh-ed25519 AAAA me", "ssh-ed25519 BBBB you"),
    )
    assert told["configuration"]["env"] == {"TOKEN": "s3cret"}
    assert told["configuration"]["ports"] == [8000]
    assert told["configuration"]["registry_auth"] == {"username": "me", "password": "hidden"}
    assert told["ssh_key_pub"] == "ssh-ed25519 AAAA me"


@pytest.mark.parametrize("text", ["u:a$$b@h", "${{ secrets.x }}", "${{", "$", "a$", "$a$$b$$$", "plain"])
async def test_a_variable_and_a_login_with_dollars_arrive_as_they_were_written(text: str) -> None:
    async with dstack_bench() as bench:
        asked = terms(environment=(("DB_URL", text),), login=Login("ghcr.io", text, text))
        run_id = await bench.market.rent(await bench.offer(), asked, LABEL)
        assert (await bench.running(run_id)).state is InstanceState.RUNNING
        run = bench.world.runs[run_id]
        told = run.configuration["registry_auth"]
        assert run.env == {"DB_URL": text}
        assert {interpolation.interpolated(each) for each in told.values()} == {text}


def test_without_a_command_and_a_script_the_image_decides() -> None:
    assert ordered(command="")["configuration"]["commands"] == []


@pytest.mark.parametrize(
    "onstart",
    ["echo hi", "echo hi  # and no more", "cat <<EOF\nhi\nEOF", "false", "echo hi &", "exec 2>&1\necho hi\n"],
    ids=["plain", "comment", "here-document", "failure", "background", "lines"],
)
def test_a_container_stays_after_its_start_script_whatever_that_ends_with(onstart: str, tmp_path: pathlib.Path) -> None:
    stays = tmp_path / "sleep"
    stays.write_text('#!/bin/sh\nprintf "%s" "$*" > "$(dirname "$0")/slept"\n')
    stays.chmod(0o755)
    commands = ordered(command="", onstart=onstart)["configuration"]["commands"]
    joined = " && ".join(command.strip() for command in commands)  # as the server does
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run(["/bin/sh", "-c", joined], env={"PATH": path}, check=True, timeout=30, capture_output=True)
    assert (tmp_path / "slept").read_text() == "infinity"


@pytest.mark.parametrize(
    "changes",
    [
        {"tenure": Tenure.INTERRUPTIBLE, "bid": money.per_hour(1)},
        {"bid": money.per_hour(1)},
        {"command": "echo 'open"},
        {"network_volume": "vol"},
        {"template": "t"},
        {"runtype": Runtype.JUPYTER},
    ],
    ids=",".join,
)
def test_terms_that_cannot_be_meant_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(market_errors.Rejected):
        ordered(**changes)


@pytest.mark.parametrize("label", ["", "mine", "gpubid-0123456789ab-0-0123456789abcdef"])
def test_a_run_without_a_whole_label_is_never_ordered(label: str) -> None:
    with pytest.raises(market_errors.Rejected):
        orders.create(OFFERED, ON_DEMAND, label, "gpubid")


def test_name_and_tag_prove_a_run_only_together() -> None:
    name = names.run_name(LABEL)
    assert names.label(name, {"gpubid": LABEL}) == LABEL
    assert names.label(name, None) == name
    assert names.label(name, {"gpubid": LABEL.replace("train", "other") + "0"}) == name
    assert names.label("g0123456789ab-1-0123456789abcdef", {"gpubid": LABEL}).startswith("g0123456789ab-1-")


async def test_a_run_without_capacity_fails_with_its_reason_and_leaves_nothing() -> None:
    async with dstack_bench() as bench:
        offer = (await bench.offers(gpu_models=("L4",)))[0]
        ids = [await bench.rent(offer) for _ in range(4)]
        for _ in range(3):
            await bench.simulated.advance(15)
            await bench.market.instances()
        states = {one.instance_id: one for one in await bench.market.instances()}
        (failed,) = [one for one in states.values() if one.state is InstanceState.FAILED]
        assert "No offers" in failed.message
        assert not failed.bills_gpu
        await bench.market.release(failed.instance_id)
        assert {one.instance_id for one in await bench.market.instances()} == {*ids} - {failed.instance_id}


async def test_a_name_in_use_leaves_the_order_in_doubt() -> None:
    async with dstack_bench() as bench:
        offer = await bench.offer()
        await bench.market.rent(offer, ON_DEMAND, LABEL)
        with pytest.raises(market_errors.Ambiguous):
            await bench.market.rent(offer, ON_DEMAND, LABEL)
        assert len(await bench.market.instances()) == 1


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("Failed to apply plan. Resource has been changed. Try again or use force apply.", market_errors.Ambiguous),
        ("Cannot override active run. Stop the run first.", market_errors.Ambiguous),
        ("Error pulling configuration for image 'a' from the docker registry: unknown", market_errors.Rejected),
    ],
)
async def test_a_name_in_use_is_doubt_and_an_image_that_cannot_be_read_is_none(
    monkeypatch: pytest.MonkeyPatch, said: str, error: type[market_errors.MarketError]
) -> None:
    """The sentences of the real server at an order, from its source; the first was seen."""

    def refuse(spec: Mapping[str, Any], name: str) -> Run:
        del spec, name
        raise Refused(400, said, "error")

    async with dstack_bench() as bench:
        offer = await bench.offer()
        monkeypatch.setattr(bench.world, "submit", refuse)
        with pytest.raises(error):
            await bench.market.rent(offer, ON_DEMAND, LABEL)


async def test_nothing_is_offered_or_ordered_without_the_fleet() -> None:
    async with dstack_bench() as bench:
        offer = await bench.offer()
        await bench.simulated.control("POST", "/fleets", {"market": "dstack", "names": []})
        await bench.simulated.advance(61)
        assert await bench.offers() == []
        assert "no fleet gpubid" in bench.market.not_sold()[Tenure.ON_DEMAND]
        with pytest.raises(market_errors.Rejected) as caught:
            await bench.market.rent(offer, ON_DEMAND, LABEL)
        assert (caught.value.reason, await bench.calls("POST", "/runs/apply")) == ("no_fleet", 0)
        await bench.simulated.control("POST", "/fleets", {"market": "dstack", "names": ["gpubid"]})
        assert await bench.offers(), "a missing fleet is looked for at each question"
        assert bench.market.not_sold() == {}


async def test_a_full_fleet_offers_nothing_says_so_and_takes_runs_again_once_one_has_ended() -> None:
    async with dstack_bench() as bench:
        bench.world.make_fleet({**server.FLEET_CONFIGURATION, "nodes": {"min": 0, "max": 1}})
        run_id = await bench.rent(await bench.offer())
        await bench.running(run_id)
        await bench.simulated.advance(61)
        assert await bench.offers() == []
        why = "the fleet gpubid is full (1 of 1 machines): raise `nodes` in its file, then `dstack apply -f` it"
        assert bench.market.not_sold() == {Tenure.ON_DEMAND: why, Tenure.INTERRUPTIBLE: why}
        (_, found) = await findings(bench.market, DstackOptions(fleet="gpubid", backends=("aws",)), 2)
        assert (found.sentence, found.fix) == tuple(why.split(": "))
        with pytest.raises(market_errors.Unfinished):
            await bench.market.release(run_id)
        await bench.simulated.advance(61)
        assert await bench.offers()
        assert bench.market.not_sold() == {}


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"nodes": {"min": 1}, "idle_duration": 0}, "nobody uses"),
        ({"nodes": {"min": 0, "target": 5, "max": 9}, "idle_duration": 0}, "nobody uses"),
        ({"nodes": {"min": 0}, "idle_duration": 300}, "keeps idle machines"),
        ({"nodes": {"min": 0}, "idle_duration": 0, "ssh_config": {}}, "hosts of its own"),
        ({"nodes": {"min": 0}, "idle_duration": 0}, "spot_policy: auto"),
        ({"nodes": {"min": 0}, "idle_duration": 0, "spot_policy": "on-demand"}, "spot_policy: auto"),
    ],
)
async def test_a_fleet_that_costs_without_work_is_not_used(made: dict[str, Any], said: str) -> None:
    async with dstack_bench() as bench:
        bench.world.fleets["gpubid"]["configuration"] = {"type": "fleet", "name": "gpubid", **made}
        assert await bench.offers() == []
        assert said in bench.market.not_sold()[Tenure.ON_DEMAND]


async def test_no_lease_is_paused_started_again_or_bid_for() -> None:
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        for order in (
            bench.market.pause(run_id),
            bench.market.resume(run_id),
            bench.market.rebid(run_id, money.per_hour(1)),
        ):
            with pytest.raises(market_errors.Rejected):
                await order
        assert not bench.market.rules().can_pause


async def test_no_secret_of_a_run_is_in_an_error() -> None:
    async with dstack_bench() as bench:
        await bench.simulated.weather("invalid_request", route="PUT /asks")
        secret = terms(environment=(("TOKEN", "s3cret-value"),))
        with pytest.raises(market_errors.MarketError) as caught:
            await bench.market.rent(await bench.offer(), secret, LABEL)
        assert "s3cret-value" not in json.dumps(str(caught.value))
