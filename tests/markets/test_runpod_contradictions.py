"""A field of a pod that another field or GraphQL contradicts: nothing is lost, nothing is counted otherwise."""

from contextlib import nullcontext
from typing import Any

import pytest

from agent.clock import SteppedClock
from agent.domain import money
from agent.domain.market.instance import Instance, InstanceState
from agent.markets import market_errors
from agent.markets.runpod.evidence import contradictions, silence
from tests.markets import pods
from tests.markets.wire import Says, Seen

RUNS: dict[str, Any] = {
    "id": pods.POD,
    "podType": "RESERVED",
    "desiredStatus": "RUNNING",
    "costPerHr": 1.32,
    "containerDiskInGb": 40,
    "volumeInGb": 60,
    "runtime": {"uptimeInSeconds": 900},
}


async def seen(clock: SteppedClock, *answers: tuple[dict[str, Any], dict[str, Any]], wait: float = 60.0) -> Instance:
    """Return the pod as the last of these pairs of rows shows it, REST's and GraphQL's, each told once."""
    row, told = answers[0]
    async with pods.runpod_saying(pods.listing(row, told=[told]), clock) as (runpod, wire):
        for row, told in answers:
            wire.answers = pods.listing(row, told=[told])
            (found,) = await runpod.instances()
            clock.advance(wait)
    return found


def row(**changes: Any) -> dict[str, Any]:
    return pods.pod(disk=40, mounts={"persistent": {"size": 60, "path": "/workspace"}}, cost=1.32) | changes


@pytest.mark.parametrize("status", ["EXITED", "TERMINATED", "ERROR"])
async def test_an_end_that_cost_and_graphql_contradict_is_no_end(clock: SteppedClock, status: str) -> None:
    wait = contradictions.PATIENCE_SECONDS
    silent = RUNS | {"runtime": None}
    found = await seen(clock, (row(), silent), *[(row(status=status), silent)] * 3, wait=wait)
    assert (found.state, found.bills_gpu) == (InstanceState.UNKNOWN, True)


@pytest.mark.parametrize("status", [None, "junk", "PROVISIONING", "STARTING", "EXITED", "TERMINATED", "ERROR"])
async def test_a_pod_whose_cost_and_two_reports_show_that_it_runs_is_running(
    clock: SteppedClock, status: str | None
) -> None:
    """Each such word, told for an hour from the rent on, ended a working pod and rented another one."""
    shown = row(status=status)
    found = await seen(clock, (shown, RUNS))
    assert (found.state, found.bills_gpu) == (InstanceState.RUNNING, True)


@pytest.mark.parametrize(("status", "cost", "is_done"), [("junk", 0, True), (None, 0, True), ("RUNNING", 1.32, False)])
async def test_a_pause_that_is_refused_is_done_if_cost_and_graphql_show_the_pod_stopped(
    clock: SteppedClock, status: str | None, cost: float, *, is_done: bool
) -> None:
    """One wrong word had the pause before a move of an outbid pod refused for as long as the word was wrong."""
    shown, told = row(status=status, cost=cost, runtime=None), RUNS | {"desiredStatus": "EXITED", "runtime": None}
    listed = pods.listing(shown, told=[told])

    def answers(asked: Seen) -> Says:
        if asked.path == f"/v2/pods/{pods.POD}/action":
            return pods.problem(409, "Action stop is not valid for a pod that is EXITED.")
        return Says(shown) if asked.path == f"/v2/pods/{pods.POD}" else listed(asked)

    async with pods.runpod_saying(answers, clock) as (runpod, _):
        await runpod.instances()
        with nullcontext() if is_done else pytest.raises(market_errors.Rejected):
            await runpod.pause(pods.POD)


@pytest.mark.parametrize(
    ("changes", "told"),
    [({"cost": 0.0}, {}), ({"runtime": None}, {}), ({}, {"runtime": None}), ({}, {"desiredStatus": None})],
    ids=["no cost", "no report", "no report in GraphQL", "no word of GraphQL"],
)
async def test_a_pod_of_unknown_status_runs_only_if_all_others_show_it(
    clock: SteppedClock, changes: dict[str, Any], told: dict[str, Any]
) -> None:
    found = await seen(clock, (row(status="junk", **changes), RUNS | told))
    assert found.state is InstanceState.UNKNOWN


STOPPED: dict[str, Any] = {"status": "EXITED", "cost": 0.0, "runtime": None}
STOPS = RUNS | {"desiredStatus": "EXITED", "lastStatusChange": "Exited by user: Thu Nov 05 2026"}


@pytest.mark.parametrize("status", [None, "", "junk", "RUNNING", "STARTING", "PROVISIONING"])
async def test_a_stop_that_cost_and_graphql_show_is_one_whatever_the_status_says(
    clock: SteppedClock, status: str | None
) -> None:
    """Each such word counted the GPUs of a paused lease."""
    found = await seen(clock, (row(**STOPPED), STOPS), *[(row(**STOPPED | {"status": status}), STOPS)] * 2)
    assert (found.state, found.bills_gpu) == (InstanceState.PAUSED, False)
    begun = await seen(clock, (row(**STOPPED), STOPS), (row(**STOPPED | {"status": "STARTING"}), RUNS))
    assert begun.state is InstanceState.LOADING


async def test_a_broken_pod_is_not_called_stopped(clock: SteppedClock) -> None:
    found = await seen(clock, (row(**STOPPED), STOPS), (row(**STOPPED | {"status": "ERROR"}), STOPS))
    assert found.state is InstanceState.FAILED


async def test_a_size_of_a_stopped_pod_that_one_surface_alone_changes_is_unread(clock: SteppedClock) -> None:
    """A volume of a thousand times its size counted $11 of $0.01 in an hour."""
    large = {"mounts": {"persistent": {"size": 60_000, "path": "/workspace"}}}
    found = await seen(clock, (row(**STOPPED), STOPS), (row(**STOPPED | large), STOPS))
    assert "disk_rate" in found.unread


async def test_an_end_that_graphql_confirms_is_one_at_once(clock: SteppedClock) -> None:
    told = RUNS | {"desiredStatus": "EXITED", "lastStatusChange": "Exited by user: Thu Nov 05 2026"}
    found = await seen(clock, (row(), RUNS), (row(status="EXITED"), told))
    assert found.state is InstanceState.PAUSED


async def test_a_pod_that_exited_is_paused_although_its_last_report_is_still_shown(clock: SteppedClock) -> None:
    row = pods.pod(status="EXITED", cost=0.0, runtime={"uptime": 900})
    async with pods.runpod_saying(pods.listing(row), clock) as (runpod, _):
        (found,) = await runpod.instances()
    assert (found.state, found.bills_gpu) == (InstanceState.PAUSED, False)


async def test_an_end_with_a_cost_is_believed_at_last_where_graphql_says_nothing(clock: SteppedClock) -> None:
    wait = contradictions.PATIENCE_SECONDS * 0.6
    other = {"id": "another", "podType": "RESERVED"}
    states = [(await seen(clock, *[(row(status="EXITED"), other)] * times, wait=wait)).state for times in (1, 2, 3)]
    assert states == [InstanceState.UNKNOWN, InstanceState.UNKNOWN, InstanceState.PAUSED]


async def test_a_look_by_id_at_a_pod_that_is_called_ended_and_costs_something_finds_it(clock: SteppedClock) -> None:
    silent = RUNS | {"runtime": None}
    async with pods.runpod_saying(pods.listing(row(), told=[silent]), clock) as (runpod, wire):
        answers = wire.answers
        wire.answers = lambda asked: (
            Says(row(status="TERMINATED")) if asked.path == f"/v2/pods/{pods.POD}" else answers(asked)
        )
        assert (await runpod.instance(pods.POD)).state is InstanceState.UNKNOWN
        wire.answers = lambda asked: (
            Says(row(status="TERMINATED", cost=0.0)) if asked.path == f"/v2/pods/{pods.POD}" else answers(asked)
        )
        with pytest.raises(market_errors.NotFound):
            await runpod.instance(pods.POD)


@pytest.mark.parametrize("factor", [0.001, 0.5, 2, 1000])
async def test_a_cost_that_one_surface_alone_changes_is_unread(clock: SteppedClock, factor: float) -> None:
    here = await seen(clock, (row(), RUNS), (row(cost=1.32 * factor), RUNS))
    there = await seen(clock, (row(), RUNS), (row(), RUNS | {"costPerHr": 1.32 * factor}))
    assert "gpu_rate" in here.unread
    assert "gpu_rate" in there.unread


@pytest.mark.parametrize(("factor", "counts"), [(2, "2.64"), (0.5, "1.32"), (1000, None), (0.001, None)])
async def test_the_higher_of_two_costs_that_differ_for_long_counts_unless_it_is_absurd(
    clock: SteppedClock, factor: float, counts: str | None
) -> None:
    wait = contradictions.LONG_SECONDS / 2
    for apart in [(row(cost=1.32 * factor), RUNS), (row(), RUNS | {"costPerHr": 1.32 * factor})]:
        assert "gpu_rate" in (await seen(clock, (row(), RUNS), *[apart] * 2, wait=wait)).unread
        found = await seen(clock, (row(), RUNS), *[apart] * 3, wait=wait)
        assert ("gpu_rate" in found.unread) is (counts is None)
        assert counts is None or found.gpu_rate == money.per_hour(counts)


async def test_a_cost_that_both_surfaces_change_counts(clock: SteppedClock) -> None:
    found = await seen(clock, (row(), RUNS), (row(cost=1.5), RUNS | {"costPerHr": 1.5}))
    assert (found.gpu_rate, found.unread) == (money.per_hour("1.5"), frozenset())


async def test_surfaces_that_never_agreed_prove_nothing(clock: SteppedClock) -> None:
    found = await seen(clock, *[(row(), RUNS | {"costPerHr": 1.1, "volumeInGb": 0})] * 3)
    assert (found.gpu_rate, found.unread) == (money.per_hour("1.32"), frozenset())


@pytest.mark.parametrize(
    ("changed", "told", "is_shown_twice"),
    [
        ({}, {}, True),
        ({}, {"costPerHr": 1.325}, True),
        ({}, {"costPerHr": 0.66}, False),
        ({}, {"costPerHr": None}, False),
        ({"status": "EXITED", "cost": 0.0}, {"desiredStatus": "EXITED"}, False),
    ],
)
async def test_a_rate_is_shown_twice_only_if_both_surfaces_show_it_of_a_pod_that_costs_something(
    clock: SteppedClock, changed: dict[str, Any], told: dict[str, Any], *, is_shown_twice: bool
) -> None:
    assert (await seen(clock, (row(**changed), RUNS | told))).is_rate_shown_twice is is_shown_twice


async def test_a_bid_that_one_surface_alone_changes_stays_the_known_one(clock: SteppedClock) -> None:
    bid = RUNS | {"podType": "INTERRUPTABLE"}
    here = await seen(clock, (row(), bid), (row(cost=1320.0), bid))
    there = await seen(clock, (row(), bid), (row(), bid | {"costPerHr": 1320.0}))
    assert here.gpu_rate == there.gpu_rate == money.per_hour("1.32")


@pytest.mark.parametrize("changed", [{"disk": 40_000}, {"mounts": {"persistent": {"size": 60_000, "path": "/w"}}}])
async def test_a_size_that_one_surface_alone_changes_is_unread(clock: SteppedClock, changed: dict[str, Any]) -> None:
    found = await seen(clock, (row(), RUNS), (row(**changed), RUNS))
    assert "disk_rate" in found.unread


@pytest.mark.parametrize("runtime", [None, {}, "junk", {"uptime": "junk"}])
async def test_a_host_is_silent_only_if_graphql_shows_no_report_either(clock: SteppedClock, runtime: Any) -> None:
    wait = silence.SILENCE_SECONDS
    reported = await seen(clock, (row(), RUNS), *[(row(runtime=runtime), RUNS)] * 3, wait=wait)
    silent = RUNS | {"runtime": None}
    unreported = await seen(clock, (row(), silent), *[(row(runtime=runtime), silent)] * 3, wait=wait)
    assert (reported.state, unreported.state) == (InstanceState.RUNNING, InstanceState.OFFLINE)


@pytest.mark.parametrize("broken", [{"gpus": [{"util": "junk"}]}, {"ports": "junk"}, {"gpus": 7}])
async def test_one_unreadable_figure_of_a_report_leaves_the_others(clock: SteppedClock, broken: Any) -> None:
    runtime = {"uptime": 900, "gpus": [{"util": 80}], "ports": []} | broken
    async with pods.runpod_saying(pods.listing(row(runtime=runtime)), clock) as (runpod, _):
        (found,) = await runpod.instances()
    assert found.state is InstanceState.RUNNING


GIGABYTES = {"containerDiskInGb": 40, "volumeInGb": 40}
AS_ORDERED: dict[str, Any] = RUNS | GIGABYTES | {"costPerHr": 0.66, "gpuCount": 1}
"""GraphQL's row of a pod that is rented by `pods.ASK` from `pods.OFFERED`."""
MOUNTED: dict[str, Any] = {"mounts": {"persistent": {"size": 40, "path": "/workspace"}}}


def gpus(count: int) -> dict[str, Any]:
    return {"gpu": {"id": "NVIDIA GeForce RTX 4090", "count": count}}


async def rented(
    clock: SteppedClock, changed: dict[str, Any], told: dict[str, Any], minutes: float, *, is_ours: bool = True
) -> Instance:
    """Return a fresh pod after so many minutes of listings that show it so, rented by this process or another one."""
    row = pods.pod(status="PROVISIONING", disk=40, cost=0.66, **gpus(1), **MOUNTED) | changed
    async with pods.runpod_saying(pods.account, clock) as (runpod, wire):
        if is_ours:
            assert await runpod.rent(pods.OFFERED, pods.ASK, "gpubid:label") == pods.POD
        wire.answers = pods.listing(row, told=[AS_ORDERED | told])
        for _ in range(int(minutes) + 1):
            (found,) = await runpod.instances()
            clock.advance(60.0)
    return found


@pytest.mark.parametrize(
    ("changed", "told", "unread"),
    [
        ({"cost": 1.32}, {}, {"gpu_rate"}),
        ({}, {"costPerHr": 1.32}, {"gpu_rate"}),
        (gpus(4), {}, {"gpus", "host_id"}),
        ({"disk": 400}, {}, {"disk_gb", "disk_rate"}),
        ({"mounts": {"persistent": {"size": 400, "path": "/workspace"}}}, {}, {"disk_rate"}),
    ],
    ids=["cost", "GraphQL's cost", "GPUs", "disk", "volume"],
)
async def test_what_one_surface_shows_as_ordered_is_not_on_other_terms_by_the_other(
    clock: SteppedClock, changed: dict[str, Any], told: dict[str, Any], unread: set[str]
) -> None:
    assert (await rented(clock, changed, told, 60)).unread == unread
    # Another process does not know the order: it waits for a moment, and believes the listing then.
    assert (await rented(clock, changed, told, 1, is_ours=False)).unread == unread
    assert (await rented(clock, changed, told, 3, is_ours=False)).unread == set()


async def test_a_rent_that_both_surfaces_show_on_other_terms_is_on_other_terms(clock: SteppedClock) -> None:
    found = await rented(clock, {"cost": 1.32} | gpus(2), {"costPerHr": 1.32, "gpuCount": 2}, 0)
    assert (found.gpu_rate, found.gpus, found.unread) == (money.per_hour("1.32"), 2, frozenset())


async def test_a_pod_that_has_not_started_and_shows_no_cost_yet_is_contradicted_by_nothing(
    clock: SteppedClock,
) -> None:
    assert (await rented(clock, {"cost": 0.0}, {}, 0)).unread == frozenset()
