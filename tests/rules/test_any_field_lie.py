"""Any field of any answer lies for a while: nothing crashes, no rule breaks, order comes back.

The world holds rules 1, 2, 3 and 6 after every cycle and looks for orphans (tests/support/judge.py). The ledger's sums
are judged while no lie is active: rule 21 bounds the effect of a lying price in between.
"""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.domain.record.lease import LeaseState
from agent.simulator.vast.model import EndCause
from tests.support.world import Rehearsed, play

WORDS = ["id", "label", "price", "state", "host", "date", "next_cursor", "rows"]
KEYS = [
    *("is_bid", "num_gpus", "gpu_name", "cur_state", "intended_status", "next_state", "status_msg", "disk_space"),
    *("storage_total_cost", "storage_cost", "start_date", "end_date", "min_bid", "dlperf", "reliability2", "host_id"),
    *("inet_down", "ssh_host", "ssh_port", "public_ipaddr", "ports", "gpu_util", "total_instances", "instances_found"),
    *(
        "success",
        "offers",
        "instances",
        "credit",
        "notifications",
        "rentable",
        "geolocation",
        "gpu_ram",
        "verification",
    ),
]
WAYS = ["set", "times", "plus", "string", "nan", "inf", "minus", "null", "missing"]
OF_WORD = {
    "date": ["set", "plus", "missing"],
    "next_cursor": ["set", "null", "missing"],
    "rows": ["twice", "twice_changed"],
}
# The reply to a rent is left to rule 18, whose own tests lie about its id.
ROUTES = ["GET", "GET /instances", "GET /instances/{id}", "GET /users", "GET /notifications", "POST /bundles", "*"]


@st.composite
def lies(draw: st.DrawFn) -> dict[str, Any]:
    field = draw(st.sampled_from(WORDS + KEYS))
    how = draw(st.sampled_from(OF_WORD.get(field, WAYS)))
    lie: dict[str, Any] = {"field": field, "how": how, "route": draw(st.sampled_from(ROUTES))}
    if how in {"times", "plus"}:
        lie["value"] = draw(st.sampled_from([1000, 0.1, 0, -1, 1e300]))
    elif how == "set":
        lie["value"] = draw(st.sampled_from([0, -1, 1e300, "", "junk", "\u202e", True, 10**30]))
        lie["value"] = "junk" if field in {"date", "next_cursor"} else lie["value"]
    return lie | {"seconds": draw(st.sampled_from([1, 60, 600]))}


async def lived(world: Rehearsed, told: list[dict[str, Any]]) -> None:
    await world.until_running(minutes=360)
    foreign = world.foreign()
    for lie in told:
        world.weather("field_lie", **lie)
        await world.cycle(minutes=lie["seconds"] / 60 + 1)
    world.still()
    await world.until_running(minutes=360)
    await world.cycle(minutes=5)
    assert foreign.end_cause is not EndCause.DESTROYED
    assert {lease.state for lease in world.leases()} == {LeaseState.RUNNING}
    assert {lease.instance_id for lease in world.leases()} == {str(each.contract_id) for each in world.live()}
    assert not world.open_intents()


@settings(max_examples=12, deadline=None)
@given(told=st.lists(lies(), min_size=1, max_size=3), seed=st.integers(0, 500))
@example(told=[{"field": "price", "how": "nan", "route": "*", "seconds": 600}], seed=1)
@example(told=[{"field": "price", "how": "missing", "route": "GET", "seconds": 600}], seed=1)
@example(told=[{"field": "rows", "how": "twice", "route": "GET", "seconds": 600}], seed=1)
@example(told=[{"field": "state", "how": "set", "value": "exited", "route": "GET /instances", "seconds": 1}], seed=1)
def test_any_lie_breaks_no_rule(told: list[dict[str, Any]], seed: int) -> None:
    async def story(world: Rehearsed) -> None:
        await lived(world, told)

    play(story, seed=seed)
