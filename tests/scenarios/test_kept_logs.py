"""The last output of a container outlives it: kept at a loss, a hold and an end, and nothing waits for it."""

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

from agent.act.kept_logs import kept_log, log_keeper
from agent.act.kept_logs.kept_log import KeptLog
from agent.decide.limits.limits import Limits
from agent.domain.work.guard_terms import GuardTerms
from agent.domain.work.order import Order
from agent.domain.work.workload import WorkloadKind
from agent.web.reading import log_answers
from agent.web.reading.log_answers import LogQuestion
from tests.support import played_bucket
from tests.support.s3_server import SECRET
from tests.support.world import FLEET, Rehearsed, rehearsed, work

ROOM = 10**6


def kept(world: Rehearsed) -> list[KeptLog]:
    return [header for header, _ in kept_log.headers(kept_log.folder_of(world.config.ledger))]


async def answer(world: Rehearsed, slot: str, **changes: Any) -> dict[str, Any]:
    now, app = world.clock.now(), world.app
    place = (app.ledger.fleet_id, world.config.ledger, app.credential, now)
    known, reader = app.ledger.recollection(now), await app.ledger.reader()
    grounds = log_answers.Grounds(known, reader, app.rules.workloads, *place)
    return await log_answers.answer(LogQuestion(slot, 100, **changes), grounds, app.markets)


async def test_log_of_an_outbid_run_is_kept_and_shown_while_the_next_one_runs(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, log_bytes=ROOM) as world:
        lost = await world.until_running()
        await world.cycle(minutes=2)
        world.rival(world.contract().slice.machine_id, bid=lost.gpu_rate.dollars * 3)
        await world.cycle(minutes=1)
        [header] = kept(world)
        assert header.moment == "outbid"
        await world.until_running()
        said = await answer(world, "train/0", is_previous=True)
        assert said["lease"] == lost.lease_id
        assert any("started" in line for line in said["lines"])
        assert "kept" not in await answer(world, "train")


async def test_log_of_a_released_lease_is_read_after_the_lease_is_gone(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, log_bytes=ROOM) as world:
        lease = await world.until_running()
        await world.cycle(minutes=2)
        await world.app.say(Order("release", "train/0"), "a person")
        await world.cycle(minutes=1)
        assert world.contracts()[0].ended is not None
        said = await answer(world, "train/0", lease=lease.lease_id)
        assert any("started" in line for line in said["lines"])
        await world.restart()
        assert await answer(world, "train", lease=lease.lease_id) == said


async def test_log_that_cannot_be_had_delays_no_kill_and_is_said_so(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, log_bytes=ROOM) as world:
        lease = await world.until_running()
        world.weather("throttle_text", route="PUT /instances/request_logs/{id}")
        await world.app.say(Order("kill", "fleet:all"), "a person")
        assert world.contracts()[0].ended is not None
        await world.cycle(minutes=5)
        assert world.leases() == []
        said = await answer(world, "train/0", lease=lease.lease_id)
        assert said["error"] == "no_log"
        assert "throttled" in said["sentence"]


async def test_slot_that_is_held_keeps_its_log_and_asks_no_more(tmp_path: Path) -> None:
    told = (("SIM_DONE_AFTER", "1800"), ("SIM_DONE_LINE", "torch.OutOfMemoryError: CUDA out of memory"))
    batch = work(kind=WorkloadKind.BATCH, environment=told)
    async with rehearsed(tmp_path, log_bytes=ROOM, workloads=(batch,)) as world:
        await world.until_running()
        await world.cycle(minutes=45)
        assert await world.events("workload.held")
        said = await answer(world, "train/0", is_previous=True)
        assert any("CUDA out of memory" in line for line in said["lines"])
        asked = len(world.calls("PUT", "/instances/request_logs"))
        await world.cycle(minutes=60)
        assert len(world.calls("PUT", "/instances/request_logs")) == asked


async def test_storm_of_losses_asks_for_few_logs_at_a_time(tmp_path: Path) -> None:
    many = work(slots=5)
    async with rehearsed(tmp_path, log_bytes=ROOM, workloads=(many,), limits=Limits(instances=5)) as world:
        await world.until_running()
        await world.cycle(minutes=2)
        since = world.clock.time()
        await world.app.say(Order("kill", "fleet:all"), "a person")
        assert all(contract.ended is not None for contract in world.contracts())
        at_once = Counter(call[0] for call in world.calls("PUT", "/instances/request_logs", since))
        assert max(at_once.values()) <= log_keeper.MOST_AT_ONCE


async def test_log_of_a_long_run_is_read_from_time_to_time(tmp_path: Path) -> None:
    """Its host may take the last output along when it goes."""
    async with rehearsed(tmp_path, log_bytes=ROOM) as world:
        await world.until_running()
        for _ in range(4):
            world.clock.advance(15 * 60)
            await world.cycle()
        assert [header.moment for header in kept(world)] == ["running"]
        assert len(world.calls("PUT", "/instances/request_logs")) == 2
        world.weather("server_error_before", route="PUT /instances/request_logs/{id}")
        since = world.clock.time()
        for _ in range(8):
            world.clock.advance(15 * 60)
            await world.cycle()
        # Each reading may be tried three times on the way.
        assert 3 <= len(world.calls("PUT", "/instances/request_logs", since)) <= 4 * 3
        assert not kept(world)[0].problem, "what was kept stays"


async def test_without_room_nothing_is_asked(tmp_path: Path) -> None:
    async with rehearsed(tmp_path) as world:
        await world.until_running()
        await world.app.say(Order("release", "train/0"), "a person")
        await world.cycle(minutes=2)
        assert world.calls("PUT", "/instances/request_logs") == []
        assert not kept_log.folder_of(world.config.ledger).exists()


async def test_whole_log_of_guarded_work_is_read_from_its_bucket(tmp_path: Path) -> None:
    with played_bucket.played() as server:
        works = (work(command="python train.py", guard=GuardTerms(("/w",), bucket=server.place())),)
        async with rehearsed(tmp_path, log_bytes=ROOM, workloads=works, credential=lambda _: SECRET) as world:
            lease = await world.until_running()
            folder = f"train/{FLEET}/train/0/1/logs/{lease.intent_id}"
            server.put(f"{folder}/1785000000-000001.gz", gzip.compress(b"one\ntwo \x1b[2J\n"))
            server.put(f"{folder}/1785000000-000002.gz", gzip.compress(b"thr"))
            server.put(f"{folder}/1785000000-000003.gz", gzip.compress(b"ee\n"))
            server.put(f"{folder}/1785000000-000004.gz", b"no gzip")
            server.put(f"{folder}/1785000900-000001.gz", gzip.compress(b"of the present start\n"))
            assert (await answer(world, "train/0", is_previous=True))["error"] == "no_log", "it has one run only"
            await world.app.say(Order("pause", "train/0"), "a person")
            await world.cycle(minutes=1)
            said = await answer(world, "train/0", lease=lease.lease_id)
            assert said["lines"] == ["one", "two [2J", "three", "of the present start"]
            assert said["kept"]["moment"] == "bucket"
            await world.app.say(Order("resume", "train/0"), "a person")
            await world.until_running()
            server.put(f"{folder}/1785009999-000001.gz", gzip.compress(b"of the second run\n"))
            said = await answer(world, "train/0", is_previous=True)
            assert said["lines"][-1] == "of the present start"
    # The bucket is away now: what is beside the ledger is shown.
    assert kept_log.headers(kept_log.folder_of(world.config.ledger))


async def test_bucket_that_is_away_hides_no_kept_log(tmp_path: Path) -> None:
    with played_bucket.played() as server:
        works = (work(command="python train.py", guard=GuardTerms(("/w",), bucket=server.place())),)

        def secret(name: str) -> str:
            return SECRET if world.is_checked else name

        async with rehearsed(tmp_path, log_bytes=ROOM, workloads=works, credential=secret) as world:
            lease = await world.until_running()
            await world.cycle(minutes=2)
            await world.app.say(Order("pause", "train/0"), "a person")
            await world.cycle(minutes=1)
            world.is_checked = False
            said = await answer(world, "train/0", lease=lease.lease_id)
            assert any("started" in line for line in said["lines"])
            assert said["kept"]["moment"] != "bucket"
