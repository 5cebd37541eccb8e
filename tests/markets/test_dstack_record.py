"""The record of dstack: which clouds may be named, and what `gpubid doctor` finds missing, in its order."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from pydantic import ValidationError

from agent.clock import SteadyClock
from agent.decide.needs import Need
from agent.domain.market.tenure import Tenure
from agent.markets.dstack import market as dstack
from agent.markets.dstack import names
from agent.markets.dstack.rules import UNPROVEN_ENDS
from agent.markets.dstack.vendor_record import RECORD, REFUSED, UNPRICED, DstackOptions, findings
from agent.observe.poller import Poller
from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from tests.markets.bench_dstack import dstack_bench
from tests.support import builders

MINE = DstackOptions(fleet="gpubid", backends=("aws", "lambda"))


@pytest.mark.parametrize("cloud", ["vastai", "runpod", "dstack", "remote"])
def test_what_has_an_adapter_of_its_own_is_not_rented_at_through_dstack(cloud: str) -> None:
    with pytest.raises(ValidationError, match=cloud):
        DstackOptions(fleet="gpubid", backends=("aws", cloud))


@pytest.mark.parametrize("cluster", UNPRICED)
def test_a_cluster_without_a_price_is_refused_with_the_reason(cluster: str) -> None:
    with pytest.raises(ValidationError, match=f"knows no price of {cluster}"):
        DstackOptions(fleet="gpubid", backends=("aws", cluster))


def test_a_cloud_whose_ends_the_server_cannot_prove_is_refused_with_the_reason() -> None:
    with pytest.raises(ValidationError, match="after an error of crusoe the server calls a machine terminated"):
        DstackOptions(fleet="gpubid", backends=("aws", "crusoe"))


def test_the_handbooks_table_refuses_what_the_configuration_refuses() -> None:
    file = Path(__file__).parents[2] / "deploy" / "handbook" / "clouds.toml"
    rows = tomllib.loads(file.read_text())["clouds"]
    refused = {name for name, row in rows.items() if "refused" in row and "cannot be given" not in row["refused"]}
    assert refused == {*REFUSED, *UNPRICED, *UNPROVEN_ENDS}


@pytest.mark.parametrize("fleet", ["", "Big", "a" * 60, "a b"])
def test_the_name_of_a_fleet_is_one_of_the_server(fleet: str) -> None:
    with pytest.raises(ValidationError):
        DstackOptions(fleet=fleet)


async def test_doctor_finds_first_the_missing_cloud_and_then_the_fleet_with_its_file() -> None:
    async with dstack_bench() as bench:
        assert [one.fix for one in await findings(bench.market, MINE, 2)] == ["", ""]
        await bench.simulated.control("POST", "/backends", {"market": "dstack", "names": ["cloudrift"]})
        clouds, fleet = await findings(bench.market, MINE, 2)
        assert "aws, lambda" in clouds.sentence
        assert fleet.fix == ""
        await bench.simulated.control("POST", "/fleets", {"market": "dstack", "names": []})
        await bench.simulated.advance(61)
        _, fleet = await findings(bench.market, MINE, 2)
        line = fleet.fix.removeprefix("write this line into fleet.dstack.yml: ").split("; then")[0]
        file = {"type": "fleet", "name": "gpubid", "nodes": "0..20", "idle_duration": "0s", "spot_policy": "auto"}
        assert yaml.safe_load(line) == file
        assert (await findings(bench.market, DstackOptions(), 2))[0].fix.startswith("write [markets.dstack] backends")


async def test_doctor_compares_the_room_of_the_fleet_with_the_slots() -> None:
    async with dstack_bench() as bench:
        enough, short = [(await findings(bench.market, MINE, slots))[1] for slots in (20, 21)]
        assert enough.fix == ""
        assert short.sentence == "the fleet gpubid has room for 20 machines, but 21 slots may run in it"
        assert short.fix == "raise `nodes` in its file, then `dstack apply -f` it"
        assert not short.is_failure


async def test_the_first_pass_tells_that_the_fleet_is_missing_and_the_next_one_that_it_is_there() -> None:
    """`gpubid explain` without a daemon runs one pass."""
    async with dstack_bench() as bench:
        await bench.simulated.control("POST", "/fleets", {"market": "dstack", "names": []})
        poller = Poller(bench.market, SteadyClock(bench.clock), "", lambda _: "")
        need = Need(builders.workload(markets=("dstack",)), ("new",), ())
        await poller.look()
        assert "no fleet gpubid" in (await poller.ask([need], [])).not_sold[Tenure.ON_DEMAND]
        await bench.simulated.control("POST", "/fleets", {"market": "dstack", "names": ["gpubid"]})
        await bench.simulated.advance(300)
        await poller.look()
        assert (await poller.ask([need], [])).not_sold == {}


async def test_without_a_named_cloud_the_advice_is_to_name_one_that_the_server_has() -> None:
    async with dstack_bench() as bench:
        await bench.market.instances()
        assert bench.market.not_sold() == {}
        url = bench.simulated.simulator.url("dstack")
        bare = dstack.connect(url, lambda: DEFAULT_KEY, bench.clock, lambda: 0.5, terrain=dstack.Terrain())
        await bare.backends()
        assert set(bare.not_sold()) == {Tenure.ON_DEMAND, Tenure.INTERRUPTIBLE}
        assert "set [markets.dstack] backends" in bare.not_sold()[Tenure.ON_DEMAND]
        assert "aws, cloudrift" in bare.not_sold()[Tenure.ON_DEMAND]
        await bare.close()


def test_a_simulated_server_has_the_fleet_that_rehearsals_use() -> None:
    assert MINE.model_copy(update={"fleet": "other"}).on_simulated_market().fleet == "gpubid"
    assert RECORD.options is DstackOptions


@pytest.mark.nightly
def test_check_knows_the_cards_without_a_bus_where_the_workload_may_run_there_and_nowhere_else(tmp_path: Path) -> None:
    assert RECORD.own_cards == set(names._SLOWEST)
    (tmp_path / "key").write_text("made-up")
    (tmp_path / "key").chmod(0o600)
    here = ELSEWHERE.replace("[markets.vast]", '[markets.dstack]\nfleet = "gpubid"\nbackends = ["aws"]')
    for text, is_known in ((here, True), (ELSEWHERE, False)):
        (tmp_path / "agent.toml").write_text(text.replace('image = "ubuntu"', 'image = "ubuntu"\ngpu = ["A100"]'))
        command = [sys.executable, "-m", "agent", "check"]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ("knows no card" not in ran.stdout + ran.stderr) == is_known, ran.stdout + ran.stderr


ELSEWHERE = """\
[markets.vast]
url = "http://127.0.0.1:9"
credential_file = "key"
[limits]
max_price_per_instance_hour = 1.0
max_fleet_per_hour = 2.0
max_per_day = 10.0
max_per_month = 100.0
max_instances = 2
[workloads.train]
image = "ubuntu"
max_price = 0.5
strategy = "patient"
"""
PLAN = """\
import sys
import tomllib
from typer.testing import CliRunner
from agent.cli.main import app
ran = CliRunner().invoke(app, ["plan"])
print(ran.output)
print("modules:", *sorted(name for name in sys.modules if "dstack" in name))
"""


@pytest.mark.nightly
def test_without_its_table_only_its_records_are_imported(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(ELSEWHERE)
    (tmp_path / "key").write_text("made-up")
    (tmp_path / "key").chmod(0o600)
    ran = subprocess.run([sys.executable, "-c", PLAN], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "vast" in ran.stdout
    (told,) = [line for line in ran.stdout.splitlines() if line.startswith("modules:")]
    records = {"dstack", "rules", "vendor_record", "climate_table"}
    assert {name.rsplit(".", 1)[1] for name in told.split()[1:]} <= records
