"""`gpubid explain WORKLOAD/SLOT`: why one slot is as it is, from its lease down to the sample of the market."""

from pathlib import Path
from typing import Any

import pytest

from agent.cli.watch import explain
from agent.domain.market import gpu
from agent.domain.record.cooldown import Cooldown, CooldownKind
from agent.domain.work.order import Order
from agent.domain.work.workload import Fallback, Requirements
from agent.markets.dstack.vendor_record import DstackOptions
from agent.web.reading import cloud_prices, verb_json
from tests.support import builders
from tests.support.both import both
from tests.support.world import Rehearsed, rehearsed, work

WANTS = Requirements(gpu_models=(gpu.model("RTX 4090"),), verified_only=False)


async def shown(world: Rehearsed, name: str) -> dict[str, Any]:
    """Return the explanation of a slot after one more cycle."""
    await world.cycle()
    reader = await world.app.ledger.reader()
    assert world.app.seen is not None
    return verb_json.explained(world.app.seen, await reader.decisions(), await reader.weighed(), name)


async def test_a_slot_tells_its_lease_its_last_decision_and_what_keeps_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with rehearsed(tmp_path, workloads=(work(slots=2),)) as world:
        await world.until_running()
        await world.app.say(Order("pause", "train/0"), "a test")
        await world.app.say(Order("lock", "market:vast"), "a test")
        now = world.clock.now()
        async with world.app.ledger.transaction() as tx:
            for index in (0, 1):
                later = now.replace(year=now.year + 1)
                tx.add_expiring(Cooldown(CooldownKind.SLOT, f"train/{index}", later, f"a rent of {index}"))
        found = await shown(world, "train/0")
        capsys.readouterr()
        (lease,) = [each for each in world.leases() if str(each.slot) == "train/0"]
        explain._print_slot(found)
        told = capsys.readouterr().out
        both = await shown(world, "train")
    (slot,) = found["slots"]
    assert (slot["slot"], slot["lease"], slot["state"]) == ("train/0", lease.lease_id, lease.state.value)
    assert {row["what"] for row in slot["kept_by"]} == {"pause:slot:train/0", "lock:market:vast", "slot:train/0"}
    assert [row["slot"] for row in both["slots"]] == ["train/0", "train/1"]
    assert {row["slot"] for row in found["last"]} == {"train/0"}
    assert {row["slot"] for row in both["last"]} == {"train/0", "train/1"}
    (now_of,) = found["now"]
    assert {row["slot"] for row in now_of["decisions"]} == {"train/0"}
    lines = told.splitlines()
    assert lines[0].startswith(f"train/0: {lease.state.value} since ")
    assert (
        f"lease {lease.lease_id}, 1x {lease.gpu} on vast/{lease.host_id}, ${lease.billing_rate.dollars:.4f}/h"
        in lines[0]
    )
    assert lines[1].startswith("  last: ")
    assert "train/0 hold, paused: slot:train/0 is paused by a test" in lines[1]
    kept = "  kept by a hold until it is lifted: "
    assert f"{kept}pause of slot train/0, after a test; `gpubid resume train/0` ends it" in lines
    assert "train/1" not in told
    assert lines.index(f"{kept}lock of market vast, after a test; `gpubid unlock market:vast` ends it") < next(
        number for number, line in enumerate(lines) if "offers seen" in line
    )


async def test_an_empty_slot_that_nothing_keeps_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with rehearsed(tmp_path) as world:
        found = await shown(world, "train/0")
        found["slots"][0] |= {"kept_by": [], "in_doubt": []}
        explain._print_slot(found)
    assert "  no hold, no cooldown and no order in doubt keeps it" in capsys.readouterr().out


async def test_without_a_server_of_clouds_published_prices_are_shown_with_their_dates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with rehearsed(tmp_path, workloads=(work(requirements=WANTS),)) as world:
        found = await shown(world, "train")
        explain._print(found)
    rows = found["now"][0]["clouds"]
    assert 1 <= len(rows) <= 2 * cloud_prices.MOST
    known = {each.name: each for each in cloud_prices.shipped().find("RTX 4090") if each.cloud != "vast"}
    for row in rows:
        figure = known[row["cloud"]]
        assert (row["dated"], row["source"]) == (figure.dated, figure.source)
    line = f"  on clouds, as published: {rows[0]['cloud']} 1x RTX 4090 $"
    assert line in capsys.readouterr().out


async def test_with_a_server_its_own_prices_are_shown_while_it_is_a_fallback_that_is_closed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needs = builders.workload(markets=("vast",), fallback=Fallback(("dstack",)), requirements=WANTS)
    there = {"dstack": DstackOptions(fleet="mine", backends=("aws", "cloudrift"))}
    async with both(tmp_path, needs, markets=("vast", "dstack"), options=there, is_wired=True) as world:
        await world.cycle()
        await world.cycle()
        assert world.app.seen is not None
        found = verb_json.explained(world.app.seen, (), (), "train")
        explain._print(found)
        asks = {row.ask.dollars for row in world.app.seen.fleet.markets["dstack"].offers if row.ask is not None}
    rows = found["now"][0]["clouds"]
    first = rows[0]
    assert {row["dated"] for row in rows} == {None}
    assert (first["cloud"], first["tenure"]) == ("cloudrift", "on_demand")
    assert first["dollars_per_hour"] == pytest.approx(min(asks))
    price = f"${first['dollars_per_hour']:.4f}/h on demand"
    assert f" UTC: cloudrift 1x RTX 4090 {price}" in capsys.readouterr().out
