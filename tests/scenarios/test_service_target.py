"""A service with a target: how long it had enough warm slots is recorded, survives a restart, and is shown."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from agent.cli.watch import explain
from agent.decide.strategy import Tuned
from agent.domain.work.workload import WorkloadKind
from agent.pass_metrics import Figures
from agent.telemetry.metric_updates import Metrics
from agent.web.reading import verb_json
from strategies.hedged import Hedged
from strategies.hedged_rules.params import HedgedParams
from tests.support.world import STILL, Rehearsed, rehearsed, work

SERVICE = work("serve", kind=WorkloadKind.SERVICE, strategy="hedged", slots=2)
TUNED = {"hedged": Tuned("hedged", Hedged(), HedgedParams(keep_warm=True, target=0.9, share_of_owner=1.0), "test")}


def shown(world: Rehearsed) -> dict[str, Any]:
    """What `gpubid explain` says about the service."""
    assert world.app.seen is not None
    (found,) = verb_json.explained(world.app.seen, (), (), None)["now"]
    return dict(found)


SAID = "a target of 0.9 warm"


async def test_the_time_with_enough_warm_slots_is_kept_and_shown(tmp_path: Path, capsys: Any) -> None:
    async with rehearsed(tmp_path, climate=STILL, workloads=(SERVICE,), tuned=TUNED) as world:
        await world.cycle()
        assert shown(world)["services"][0]["availability"] is None
        await world.until_running(slots=1)
        await world.cycle(minutes=30)
        kept = world.app.ledger.recollection(world.clock.now()).warm["serve"]
        assert 0.4 < kept.wanted_hours < 0.6
        assert kept.availability == 1.0

        await world.restart(after_seconds=3600)
        assert world.app.ledger.recollection(world.clock.now()).warm["serve"] == kept
        (lease,) = world.leases()
        world.rival(int(lease.host_id), bid=9.0)
        await world.cycle(minutes=20)
        after = world.app.ledger.recollection(world.clock.now()).warm["serve"]
        # The hour away is unknown, and the time until another host had loaded the image was short.
        assert after.wanted_hours < kept.wanted_hours + 0.4
        assert 0.01 < after.short_hours < 0.4

        found = shown(world)
        assert found["services"][0]["availability"] == after.availability
        assert (found["services"][0]["target"], found["services"][0]["needed"]) == (0.9, 1)
        assert found["services"][0]["worth_hours_on_demand"] > 0
        explain._print_now(found)
        assert f"a target of 0.9 warm, {after.availability:.4f} achieved" in capsys.readouterr().out

        registry = CollectorRegistry()
        assert world.app.seen is not None
        Figures(Metrics(registry, ["vast"], ["serve"])).see(world.app, world.app.seen)
        of_service = {"workload": "serve"}
        assert registry.get_sample_value("gpubid_service_availability_ratio", of_service) == after.availability
        assert registry.get_sample_value("gpubid_service_target_ratio", of_service) == 0.9
        listed = verb_json.fleet((SERVICE,), world.app.ledger.recollection(world.clock.now()), (), world.clock.now())
        assert listed["services"][0]["short_hours"] == after.short_hours
        # A decision about a spare needs an offer in view, and searches have their own pace.
        await world.until(lambda: any(SAID in each["sentence"] for each in shown(world)["decisions"]), minutes=10)


async def test_a_renamed_service_keeps_its_record(tmp_path: Path) -> None:
    """Its worth follows from the record: without one it began anew at a fraction of what had been found."""
    async with rehearsed(tmp_path, climate=STILL, workloads=(SERVICE,), tuned=TUNED) as world:
        await world.until_running(slots=1)
        await world.cycle(minutes=30)
        (before,) = shown(world)["services"]
        world.config = replace(world.config, workloads=(replace(SERVICE, name="api", was="serve"),))
        await world.restart(15.0)
        await world.cycle()
        (after,) = shown(world)["services"]
        assert after["wanted_hours"] >= before["wanted_hours"] > 0.4
        await world.cycle(minutes=5)
        assert world.app.ledger.recollection(world.clock.now()).warm["api"].wanted_hours > before["wanted_hours"]
