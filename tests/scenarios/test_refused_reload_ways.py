"""The commands that a refused reload names, given as they stand, make it legal, and nothing is rented meanwhile."""

import dataclasses
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from agent.config.settings import Config
from agent.decide.limits.limits import Limits
from agent.decide.operators.reload import Finding
from agent.domain import money
from agent.domain.work.order import Order
from agent.domain.work.run_times.run_window import WindowRule
from agent.domain.work.run_times.running_limit import RunningLimit
from agent.domain.work.workload import Workload
from tests.support import builders
from tests.support.both import OF_THE_PAST, both
from tests.support.scene import POLL
from tests.support.world import Rehearsed, play, strategies, work

COMMAND = re.compile(r"`gpubid (drain|release|pause|lock|resume) ([^`]+)`")


def _commands(found: Finding) -> list[tuple[str, str]]:
    """Return the verbs and targets that a refusal names, without those for after the reload and other choices."""
    before = found.sentence.partition("after the reload")[0]
    given = [(each[1], each[2]) for each in COMMAND.finditer(before)]
    return [each for each in given if each[0] not in {"pause", "resume"}]


def _refusals(world: Rehearsed, config: Config) -> list[Finding]:
    return [each for each in world.app.findings(config) if each.is_refusal]


def _works(*works: Workload) -> Callable[[Config], Config]:
    return lambda config: dataclasses.replace(config, workloads=works)


def _limits(**caps: object) -> Callable[[Config], Config]:
    return lambda config: dataclasses.replace(config, limits=Limits(**caps))  # type: ignore[arg-type]


EDITS = {
    "fewer slots": _works(work(), work("other")),
    "no workload": _works(work(slots=2)),
    "max_instances": _limits(instances=2),
    "max_fleet_per_hour": _limits(per_hour=money.per_hour("0.10")),
    "max_price_per_instance_hour": _limits(per_instance_hour=money.per_hour("0.03")),
    "max_per_month": _limits(per_month=money.usd("0.001")),
    "max_running": _works(work(slots=2, max_running=(RunningLimit(timedelta(minutes=1)),)), work("other")),
    "windows": _works(work(slots=2, windows=(WindowRule("0 12 * * *", timedelta(hours=1)),)), work("other")),
}


@pytest.mark.parametrize("name", EDITS)
def test_the_named_commands_make_a_refused_reload_legal_and_rent_nothing(name: str) -> None:
    async def story(world: Rehearsed) -> None:
        await world.until_running()
        await world.cycle(minutes=5)
        rented, config = len(world.contracts()), EDITS[name](world.config)
        assert _refusals(world, config)
        for _ in range(4):
            # A budget is refused with the next lease named once the first has ended.
            for verb, target in dict.fromkeys(each for found in _refusals(world, config) for each in _commands(found)):
                await world.app.say(Order(verb, target), "a person")
            await world.cycle(minutes=15)
        assert _refusals(world, config) == []
        assert len(world.contracts()) == rented, "the present files would have filled a released slot again"

    play(story, workloads=(work(slots=2), work("other")))


@pytest.mark.parametrize("name", ["max_fleet_per_hour", "max_per_month", "max_running", "windows"])
def test_a_pause_that_a_refusal_names_makes_it_legal_too(name: str) -> None:
    async def story(world: Rehearsed) -> None:
        await world.until_running()
        await world.cycle(minutes=5)
        config = EDITS[name](world.config)
        for _ in range(4):
            for found in _refusals(world, config):
                (target,) = {each[2] for each in COMMAND.finditer(found.sentence) if each[1] == "pause"}
                await world.app.say(Order("pause", target), "a person")
            await world.cycle(minutes=5)
        assert _refusals(world, config) == []
        assert len(world.live()) == 3, "their disks stay"

    play(story, workloads=(work(slots=2), work("other")))


async def test_a_market_is_removed_after_its_lock_and_the_release_of_its_leases(tmp_path: Path) -> None:
    job = builders.workload("train", markets=("runpod",))
    async with both(tmp_path, job, climate=OF_THE_PAST, poll=POLL) as world:
        await world.until(lambda: bool(world.running()))
        vast_alone = tuple(each for each in world.config.markets if each.name == "vast")
        without = dataclasses.replace(world.config, markets=vast_alone, workloads=(builders.workload("train"),))
        (found,) = world.app.findings(without)
        for verb, target in _commands(found):
            await world.app.say(Order(verb, target), "a person")
        await world.until(lambda: not world.leases())
        await world.cycle(minutes=15)
        assert world.live() == []
        assert world.app.findings(without) == ()
        world.app.reload(without, strategies())
        await world.until(lambda: [lease.market for lease in world.running()] == ["vast"])
