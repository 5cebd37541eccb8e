"""A batch that stops is done, or held for a person; a service goes on; what fails everywhere is no host's fault."""

from pathlib import Path

from agent.decide.reconcile import workload_end
from agent.domain.market.interruption import Cause
from agent.domain.record.lease import LeaseState
from agent.domain.work.order import Order
from agent.domain.work.workload import WorkloadKind
from tests.support import levers
from tests.support.world import POLL, rehearsed, work

BATCH = work(kind=WorkloadKind.BATCH)


async def test_batch_is_done_when_its_container_ends(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(BATCH,)) as world:
        await world.until_running()
        await world.cycle(minutes=30)
        contract = world.contract()
        levers.exit_container(world.market, contract.contract_id)
        await world.cycle(minutes=5)
        assert not world.leases()
        assert contract.ended is not None
        [done] = await world.events("workload.done")
        assert done.amount is not None
        assert done.amount.dollars > 0.02
        await world.cycle(minutes=60)
        assert len(world.contracts()) == 1, "what is done was rented again"
        assert world.leases() == []


async def test_batch_whose_container_runs_again_when_its_end_is_judged_goes_on(tmp_path: Path) -> None:
    """The host started it again between two looks: the look after which its end counts shows that it runs."""
    async with rehearsed(tmp_path, workloads=(BATCH,), poll=POLL) as world:
        await world.until_running()
        await world.cycle(minutes=30)
        contract = world.contract()
        levers.exit_container(world.market, contract.contract_id, restarts_after=60.0)
        await world.cycle()
        assert world.lease().state is LeaseState.EXITED
        world.clock.advance(workload_end.SETTLES.total_seconds())
        await world.cycle()
        assert world.lease().state is LeaseState.RUNNING
        await world.cycle(minutes=5)
        assert await world.events("workload.done") == []
        assert contract.ended is None, "what ran was released"


async def test_end_of_a_batch_is_not_judged_while_nothing_is_listed(tmp_path: Path) -> None:
    """Its container may run again meanwhile."""
    async with rehearsed(tmp_path, workloads=(BATCH,), poll=POLL) as world:
        await world.until_running()
        await world.cycle(minutes=30)
        contract = world.contract()
        levers.exit_container(world.market, contract.contract_id, restarts_after=60.0)
        await world.cycle()
        assert world.lease().state is LeaseState.EXITED
        world.weather("server_error_before", route="GET /instances")
        await world.cycle(minutes=5)
        assert await world.events("workload.done") == []
        world.still()
        await world.cycle(minutes=5)
        assert world.lease().state is LeaseState.RUNNING
        assert contract.ended is None, "what ran was released"


async def test_batch_whose_log_ends_in_an_error_is_held_and_not_done(tmp_path: Path) -> None:
    told = (("SIM_DONE_AFTER", "1800"), ("SIM_DONE_LINE", "torch.OutOfMemoryError: CUDA out of memory"))
    async with rehearsed(tmp_path, workloads=(work(kind=WorkloadKind.BATCH, environment=told),)) as world:
        await world.until_running()
        await world.cycle(minutes=40)
        assert await world.events("workload.done") == []
        [held] = await world.events("workload.held")
        assert "CUDA out of memory" in held.reason
        assert world.lease().state is LeaseState.PAUSED, "its disk may hold what it is worth a look"


async def test_work_of_a_held_batch_that_a_person_calls_done_is_useful(tmp_path: Path) -> None:
    told = (("SIM_DONE_AFTER", "1800"), ("SIM_DONE_LINE", "torch.OutOfMemoryError: CUDA out of memory"))
    async with rehearsed(tmp_path, workloads=(work(kind=WorkloadKind.BATCH, environment=told),)) as world:
        await world.until_running()
        await world.cycle(minutes=40)
        (held,) = await world.events("workload.held")
        reader = await world.app.ledger.reader()
        (loss,) = await reader.lost_work()
        before = sum(line.useful for line in await reader.lines())
        assert loss.lost > 0
        await world.app.say(Order("done", "train/0"), "uid 0")
        assert await reader.lost_work() == []
        lines = await reader.lines()
        assert sum(line.lost for line in lines) == 0, held
        assert sum(line.useful for line in lines) == before + loss.lost
        await world.app.say(Order("resume", "train/0"), "uid 0")
        await world.app.say(Order("done", "train/0"), "uid 0")
        assert sum(line.useful for line in await reader.lines()) == before + loss.lost, "it is counted once"


async def test_work_that_the_market_took_stays_lost_whatever_a_person_says(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(BATCH,)) as world:
        held = await world.until_running()
        await world.cycle(minutes=30)
        world.rival(world.contract().slice.machine_id, bid=held.gpu_rate.dollars * 3)
        await world.cycle(minutes=2)
        reader = await world.app.ledger.reader()
        (loss,) = await reader.lost_work()
        await world.app.say(Order("done", "train/0"), "uid 0")
        assert await reader.lost_work() == [loss]


async def test_batch_stopped_by_a_person_is_held_and_bills_no_gpu(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(BATCH,)) as world:
        await world.until_running()
        await world.cycle(minutes=30)
        contract = world.contract()
        world.market.stop(contract.contract_id)
        await world.cycle(minutes=60)
        assert world.lease().state is LeaseState.PAUSED
        assert contract.ended is None, "the disk was given up"
        [held] = await world.events("workload.held")
        assert "gpubid resume train/0" in held.reason
        rests = world.app.ledger.recollection(world.clock.now()).expiring
        assert ("held", "slot:train/0") in {rest.place for rest in rests}
        assert len(world.contracts()) == 1


async def test_batch_destroyed_by_a_person_is_held(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(BATCH,)) as world:
        await world.until_running()
        await world.cycle(minutes=10)
        world.market.destroy(world.contract().contract_id)
        await world.cycle(minutes=30)
        assert world.leases() == []
        assert await world.events("workload.held")
        assert len(world.contracts()) == 1, "what a person ended was rented again"


async def test_outbid_batch_goes_on(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(BATCH,)) as world:
        held = await world.until_running()
        await world.cycle(minutes=30)
        world.rival(world.contract().slice.machine_id, bid=held.gpu_rate.dollars * 3)
        await world.cycle(minutes=2)
        await world.until_running(minutes=60)
        assert not await world.events("workload.held")
        assert (await world.events("lease.interrupted"))[-1].cause is Cause.OUTBID


async def test_service_destroyed_by_a_person_moves_once_in_a_cool_off(tmp_path: Path) -> None:
    async with rehearsed(tmp_path) as world:
        await world.until_running()
        await world.cycle(minutes=10)
        world.market.destroy(world.contract().contract_id)
        await world.cycle(minutes=1)
        await world.until_running(minutes=30)
        world.market.destroy(world.contract().contract_id)
        await world.until(lambda: not world.leases(), minutes=10)
        again = world.clock.time()
        await world.until_running(minutes=40)
        assert [event.reason_code for event in await world.events("slot.cooling_off")] == ["cool_off"]
        assert world.contract().created - again >= 500


async def test_fast_exits_on_three_hosts_hold_the_workload_and_blame_no_host(tmp_path: Path) -> None:
    async with rehearsed(tmp_path) as world:
        for _ in range(3):
            await world.until(lambda: any(lease.state is LeaseState.RUNNING for lease in world.leases()), minutes=90)
            running = next(each for each in world.live() if each.running_since is not None)
            levers.exit_container(world.market, running.contract_id)
            await world.cycle(minutes=1)
        await world.cycle(minutes=60)
        contracts = world.contracts()
        assert len({contract.slice.machine_id for contract in contracts}) == len(contracts) == 3
        assert await world.events("workload.held")
        rests = world.app.ledger.recollection(world.clock.now()).expiring
        assert not [rest for rest in rests if rest.place[0] == "host"]
        hosts = world.app.ledger.recollection(world.clock.now()).hosts_on("vast")
        assert all(host.starts_failed == 0 for host in hosts.values())
        assert [lease.state for lease in world.leases()] == [LeaseState.PAUSED], "the last is kept to be looked at"
        assert not world.contracts()[-1].holds_gpu


async def test_a_person_lifts_a_hold_and_later_says_done(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(BATCH,)) as world:
        await world.until_running()
        await world.cycle(minutes=30)
        world.market.stop(world.contract().contract_id)
        await world.cycle(minutes=30)
        assert world.lease().state is LeaseState.PAUSED
        await world.app.say(Order("resume", "train/0"), "uid 0")
        await world.until_running(minutes=30)
        assert await world.events("workload.held")
        await world.app.say(Order("done", "train/0"), "uid 0")
        await world.cycle(minutes=30)
        assert world.leases() == []
        assert world.live() == []


async def test_a_held_workload_starts_its_count_anew(tmp_path: Path) -> None:
    broken = work(environment=(("SIM_EXIT_AFTER", "40"),), max_fast_exits=2)
    async with rehearsed(tmp_path, workloads=(broken,), poll=POLL) as world:
        await world.cycle(minutes=60)
        assert len(world.contracts()) == 2
        await world.app.say(Order("resume", "train"), "uid 0")
        await world.cycle(minutes=60)
        assert len(world.contracts()) >= 3
        assert len(await world.events("workload.held")) == 2


async def test_a_container_that_starts_again_by_itself_is_not_done(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(BATCH,), poll=POLL) as world:
        await world.until_running()
        await world.cycle(minutes=1)
        levers.exit_container(world.market, world.contract().contract_id, restarts_after=40)
        await world.cycle(minutes=10)
        lease = world.lease()
        assert (lease.state, lease.end_reason, lease.runs) == (LeaseState.RUNNING, "", 2)
        assert not await world.events("workload.done", "workload.held", "workload.failed_at_once")
