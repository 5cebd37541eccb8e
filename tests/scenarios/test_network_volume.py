"""A workload on a network volume of RunPod: rented where the volume is, and moved with its data."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from msgspec import structs

from agent.cli.rehearsing.rehearsal import Scene, rehearse
from agent.cli.shared import session
from agent.decide import explain
from agent.decide.limits.limits import Limits
from agent.domain.money import ZERO
from agent.domain.record import budget
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload
from agent.simulator.runpod.model import Pod, Terms
from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from agent.web.reading import spend_reports
from tests.support import builders, verdict
from tests.support.both import Both, both
from tests.support.configs import GOOD

MODEL = "RTX A4000"


def work(volume: str) -> Workload:
    wants = builders.requirements(gpu_models=(MODEL,), network_volume=volume)
    kept = Checkpoint(place=CheckpointPlace.REMOTE)
    return builders.workload(
        strategy="ondemand", requirements=wants, markets=("runpod",), checkpoint=kept, disk_gb=400.0
    )


def crowded(world: Both) -> str:
    """Return the data centre with most hosts of the model."""
    hosts = world.pods.hosts.values()
    return Counter(host.center_id or "" for host in hosts if host.gpu.name == MODEL and host.center_id).most_common(1)[
        0
    ][0]


def limits(world: Both) -> set[str]:
    """Return the limits that the last plan met."""
    return {decision.reason.limit for decision in world.app.seen.plan.decisions} if world.app.seen else set()


async def test_a_rehearsal_has_the_volumes_that_the_configuration_names(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    text = GOOD.replace("vast", "runpod").replace('"patient"', '"ondemand"\nnetwork_volume = "agv6w2qcg7"')
    file.write_text(
        text + f'gpu = ["{MODEL}"]\ncheckpoint = {{ at = "remote" }}\n[ledger]\npath = "{tmp_path / "l"}"\n'
    )
    config, tuned = session.read(file)
    told = await rehearse(config, tuned, Scene("calm", 1.0, 1), tmp_path)
    assert verdict.wrong(told) == []
    assert told.figures["useful_hours"] > 0
    # `gpubid run` on a simulated market begins with them too, and when it goes on.
    for _ in range(2):
        async with session.outside(config) as outside, aiohttp.ClientSession(outside.urls["runpod"]) as link:
            headers = {"Authorization": f"Bearer {DEFAULT_KEY}"}
            async with link.get("/v2/network-volumes", headers=headers) as reply:
                assert [each["id"] for each in (await reply.json())["networkVolumes"]] == ["agv6w2qcg7"]


async def test_an_instance_that_came_without_its_volume_is_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with both(tmp_path, work("nv1"), markets=("runpod",)) as world:
        world.pods.volumes.create("data", 50, crowded(world), "nv1")
        rent = world.pods.rent

        def forgetful(terms: Terms, bid: float | None = None) -> Pod:
            monkeypatch.undo()
            return rent(structs.replace(terms, network_volume=None, volume_gb=400), bid)

        monkeypatch.setattr(world.pods, "rent", forgetful)
        await world.until(lambda: len(world.running()) == 1)
        (pod,) = world.live()
        assert pod.terms.network_volume == "nv1"
        (ended,) = await world.events("lease.mismatched")
        assert ended.lease_id != world.leases()[0].lease_id


async def test_a_move_stays_where_the_volume_is_and_mounts_it_again(tmp_path: Path) -> None:
    async with both(tmp_path, work("nv1"), markets=("runpod",)) as world:
        center = crowded(world)
        seen = await world.cycle(minutes=2)
        assert world.leases() == []
        told = explain.explain(seen.fleet, seen.plan, work("nv1"))
        assert told.network_volume.startswith("network volume nv1 is where no offer is now, or does not exist")
        world.pods.volumes.create("data", 50, center, "nv1")
        await world.until(lambda: len(world.running()) == 1)
        (first,) = world.live()
        assert (first.host.center_id, first.terms.network_volume, first.volume_gb) == (center, "nv1", 0)
        seen = await world.cycle(minutes=60)
        told = explain.explain(seen.fleet, seen.plan, work("nv1"))
        assert told.network_volume.startswith(f"network volume nv1 is in {center}")
        # The volume bills the account, and is no part of the lease.
        assert await world.spend() == pytest.approx(world.pods.charged_total(), abs=0.01)
        world.pods.set_host_gone(first.host.machine_id)
        await world.until(lambda: bool(world.running()) and world.running()[0].instance_id != first.pod_id)
        (second,) = world.live()
        assert (second.host.center_id, second.terms.network_volume) == (center, "nv1")
        assert [volume.volume_id for volume in world.pods.volumes.all()] == ["nv1"]


async def test_a_priced_volume_is_in_spend_and_in_every_budget_from_when_it_was_known(tmp_path: Path) -> None:
    priced = replace(work("nv1"), network_volume_rate=builders.per_hour("0.60"))
    caps = Limits(total=builders.usd("0.75"))
    async with both(tmp_path, priced, markets=("runpod",), limits=caps) as world:
        await world.cycle(minutes=60)
        assert world.leases() == []
        now = world.app.clock.now()
        reader = await world.app.ledger.reader()
        told = {by: await spend_reports.answer(reader, "/spend", {"by": by}, now) for by in spend_reports.GROUPS}
        for by, report in told.items():
            (row,) = [row for row in report["rows"] if row["dollars"]]
            assert row["dollars"] + report["unmetered_dollars"] == pytest.approx(0.60, abs=0.03), by
            assert row["disk_dollars"] == row["dollars"]
        keys = {by: report["rows"][0]["key"] for by, report in told.items()}
        assert (keys["workload"], keys["market"], keys["lease"]) == ("train", "runpod", "network-volume:nv1:train")
        assert (keys["gpu"], keys["tenure"], keys["cause"]) == ("network volume", "network volume", "none")
        known = world.app.ledger.recollection(now)
        assert known.total.total == known.spend_of[budget.of_workload("train")].total > ZERO
        assert (await spend_reports.answer(reader, "/savings", {"by": "month"}, now))["total"]["dollars"] == 0.0
        # The file has the same, for the next start.
        assert (await reader.recollection(now)).volumes == known.volumes
        # With capacity where it is, the budget over the whole time now leaves nothing for a rent.
        world.pods.volumes.create("data", 50, crowded(world), "nv1")
        await world.cycle(minutes=30)
        # The market is not searched in each pass, and only a pass with offers meets the budget.
        await world.until(lambda: limits(world) == {"total"}, minutes=10)
        assert world.leases() == []
