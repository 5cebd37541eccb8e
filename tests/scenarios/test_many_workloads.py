"""Many workloads with a choice to make at once: their searches wait for their turn, and nothing waits for them."""

import itertools
from dataclasses import replace
from datetime import timedelta

from agent.daemon import SOON_SECONDS, seconds_to_next
from agent.domain import money
from agent.domain.market import gpu
from agent.domain.work.deadline import Deadline
from agent.observe import search_questions
from agent.observe.search_interval import ASK_AGAIN
from tests.support.scene import POLL, START, work
from tests.support.world import Rehearsed, play

WORKLOADS = 12
MODELS = ("RTX 3090", "RTX 4090", "RTX 4080", "RTX 3080", "RTX A5000")
NOTHING = money.per_hour("0.0001")
UNPAID = tuple(replace(work(slots=1), name=f"unpaid-{each}", max_price=NOTHING) for each in range(WORKLOADS))
PAID = tuple(replace(work(slots=1), name=f"paid-{each}") for each in range(6))


def listing_gaps(world: Rehearsed) -> list[float]:
    times = sorted(at for at, *_ in world.calls("GET", "/instances/"))
    return [later - sooner for sooner, later in itertools.pairwise(times)]


def asked_at(world: Rehearsed) -> dict[str, float]:
    (poller,) = world.app.pollers
    return {each.name: poller.searches._pace.last(each.name) for each in world.scene.workloads}


def test_searches_of_many_workloads_delay_no_listing_and_each_gets_its_turn() -> None:
    """Twelve first searches took three minutes, in which nothing was listed."""

    async def story(world: Rehearsed) -> None:
        begun = world.clock.monotonic()
        await world.cycle()
        assert world.app.search_delay is not None
        await world.cycle(minutes=6)
        assert all(at >= begun for at in asked_at(world).values())
        await world.cycle(minutes=20)
        assert max(listing_gaps(world)) <= 2 * POLL.total_seconds()
        oldest = min(asked_at(world).values())
        assert world.clock.monotonic() - oldest <= 2 * ASK_AGAIN[-1]

    play(story, seed=1, workloads=UNPAID, poll=POLL)


def test_the_next_cycle_begins_when_the_market_takes_the_search_that_was_left() -> None:
    """A poll may be as long as ten minutes."""

    async def story(world: Rehearsed) -> None:
        done = await world.cycle()
        delay = world.app.search_delay
        assert delay is not None
        assert SOON_SECONDS < delay <= 60.0
        assert seconds_to_next(done, delay) == delay
        assert seconds_to_next(done, 0.1) == SOON_SECONDS
        assert seconds_to_next(done, None) is None
        world.clock.advance(delay)
        before = sum(at > 0 for at in asked_at(world).values())
        await world.app.cycle()
        assert sum(at > 0 for at in asked_at(world).values()) > before

    play(story, seed=1, workloads=UNPAID)


def test_a_deadline_that_is_near_is_searched_for_first() -> None:
    async def story(world: Rehearsed) -> None:
        await world.cycle()
        asked = asked_at(world)
        assert asked["last"] >= 0.0
        assert min(asked.values()) < 0.0

    by = Deadline(10.0, START + timedelta(hours=10.5))
    play(story, seed=1, workloads=(*UNPAID, replace(UNPAID[0], name="last", deadline=by)))


def test_every_workload_rents_though_the_searches_of_all_do_not_fit_into_one_cycle() -> None:
    async def story(world: Rehearsed) -> None:
        await world.until_running(minutes=30)
        assert {lease.slot.workload for lease in world.leases()} == {each.name for each in PAID}

    play(story, seed=1, hosts=200, workloads=PAID)


def test_a_pass_that_no_other_follows_waits_for_all_its_searches() -> None:
    """As `gpubid plan` and `explain` do."""

    async def story(world: Rehearsed) -> None:
        for poller in world.app.pollers:
            poller.searches.is_patient = True
        await world.cycle()
        assert world.app.search_delay is None
        assert min(asked_at(world).values()) >= 0.0

    play(story, seed=1, workloads=UNPAID)


def test_a_workload_of_many_prices_asks_three_questions_and_one_for_its_held_hosts() -> None:
    own = tuple((gpu.model(name), money.per_hour(f"0.{each + 1}")) for each, name in enumerate(MODELS))
    wanted = work(max_price_by_gpu=own)
    accepted = replace(wanted, requirements=replace(wanted.requirements, gpu_models=tuple(model for model, _ in own)))
    asked = search_questions.of(accepted, (), 16)
    assert [(each.max_price, each.gpu_models) for each in asked] == [
        (money.per_hour("0.5"), (gpu.model("RTX A5000"), gpu.model("RTX 3080"))),
        (money.per_hour("0.3"), (gpu.model("RTX 4080"), gpu.model("RTX 4090"))),
        (money.per_hour("0.1"), (gpu.model("RTX 3090"),)),
    ]
    (held,) = search_questions.of(accepted, ("h1",), 16)
    assert (held.max_price, len(held.gpu_models), held.host_ids) == (money.per_hour("0.5"), len(own), ("h1",))
