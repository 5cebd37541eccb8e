"""A rent in doubt while the files change: no reload leaves it without a slot, and no new name pays for it again."""

import dataclasses

from agent.config.settings import Config
from agent.domain.record.intent import IntentState
from agent.domain.record.lease import LeaseState
from agent.domain.work.order import Order
from agent.domain.work.workload import Workload
from agent.web.reading import status_json
from tests.support.world import Rehearsed, play, strategies, work


def _with(world: Rehearsed, *works: Workload) -> Config:
    return dataclasses.replace(world.config, workloads=works)


async def _doubted(world: Rehearsed, *works: Workload) -> None:
    """Run the first slot, and let the rent of the second one that the files then want get no answer."""
    await world.until_running(slots=1)
    world.app.reload(_with(world, *works), strategies())
    world.weather("reset", when="after", route="PUT /asks", count=1)
    await world.until(lambda: bool(world.open_intents()))
    assert [intent.state for intent in world.open_intents()] == [IntentState.IN_DOUBT]


def _refused(world: Rehearsed, *works: Workload) -> list[tuple[str, str, bool]]:
    """Return key and code of what refuses a reload, and whether the only way is to wait until the doubt is settled."""
    found = [each for each in world.app.findings(_with(world, *works)) if each.is_refusal]
    return [(each.key, each.code, "once `gpubid fleet` shows no doubt" in each.sentence) for each in found]


def test_files_without_the_slot_of_a_doubted_rent_are_refused_until_it_is_settled() -> None:
    async def story(world: Rehearsed) -> None:
        await _doubted(world, work(slots=2))
        assert _refused(world, work(slots=1)) == [("workloads.train.slots", "fewer_slots", True)]
        assert _refused(world, work(slots=2)) == []
        await world.until(lambda: not world.open_intents())
        assert _refused(world, work(slots=1)) == [("workloads.train.slots", "fewer_slots", False)]

    play(story)


def test_files_without_the_workload_of_a_doubted_rent_are_refused_until_it_is_settled() -> None:
    async def story(world: Rehearsed) -> None:
        await _doubted(world, work(), work("other"))
        assert _refused(world, work()) == [("workloads.other", "workload_gone", True)]
        await world.until(lambda: not world.open_intents())
        assert _refused(world, work()) == [("workloads.other", "workload_gone", False)]

    play(story)


def test_a_renamed_workload_waits_for_the_rent_that_its_old_name_has_in_doubt() -> None:
    async def story(world: Rehearsed) -> None:
        await _doubted(world, work(slots=2))
        world.is_checked = False  # the world's own labels keep the old name
        renamed = work("new", slots=2, was="train")
        assert _refused(world, renamed) == []
        world.app.reload(_with(world, renamed), strategies())
        await world.cycle(minutes=30)
        assert sorted(str(lease.slot) for lease in world.leases()) == ["new/0", "new/1"]
        assert len(world.contracts()) == 2, "the rent in doubt blocked its slot under the new name"

    play(story)


def test_a_workload_that_was_renamed_while_no_daemon_ran_waits_for_its_rent_in_doubt() -> None:
    async def story(world: Rehearsed) -> None:
        await _doubted(world, work(slots=2))
        world.is_checked = False  # the world's own labels keep the old name
        world.config = _with(world, work("new", slots=2, was="train"))
        await world.restart()
        assert world.app.findings(world.config, is_start=True) == ()
        await world.cycle(minutes=30)
        assert sorted(str(lease.slot) for lease in world.leases()) == ["new/0", "new/1"]
        assert len(world.contracts()) == 2

    play(story)


def _told(world: Rehearsed) -> dict[str, str]:
    """Return the problems of `gpubid status`: code -> sentence."""
    app = world.app
    known = app.ledger.recollection(world.clock.now())
    daemon = status_json.daemon_of(app.seen, app.config, (), ())
    shown = status_json.shown(app.rules.workloads, known, (), world.clock.now(), app.notices(), app.rules.caps, daemon)
    assert shown["is_well"] is not bool(shown["troubles"])
    return {each["code"]: each["sentence"] for each in shown["troubles"]}


def test_a_doubted_rent_whose_slot_is_gone_at_a_start_is_held_and_told_until_a_person_ends_it() -> None:
    async def story(world: Rehearsed) -> None:
        await _doubted(world, work(slots=2))
        world.config = _with(world, work(slots=1))
        await world.restart()
        assert world.app.findings(world.config, is_start=True) == (), "good leases would bill unwatched"
        await world.until(lambda: any(lease.is_held for lease in world.leases()))
        (held,) = [lease for lease in world.leases() if lease.is_held]
        assert str(held.slot) == "train/1"
        assert f"gpubid release {held.lease_id}" in _told(world)["held"]
        (event,) = await world.events("orphan.seen")
        assert (event.lease_id, event.reason_code) == (held.lease_id, "hold")
        await world.restart()
        assert world.app.findings(world.config, is_start=True) == ()
        await world.cycle(minutes=10)
        assert len(await world.events("orphan.seen")) == 1, "it is told once"
        assert {str(lease.slot): lease.state for lease in world.leases()} == {
            "train/0": LeaseState.RUNNING,
            "train/1": LeaseState.RUNNING,
        }
        await world.app.say(Order("release", held.lease_id), "a person")
        await world.until(lambda: len(world.leases()) == 1)
        assert _told(world) == {}

    play(story)


def test_a_held_lease_whose_slot_the_files_have_again_is_adopted_into_it() -> None:
    async def story(world: Rehearsed) -> None:
        await _doubted(world, work(slots=2))
        world.config = _with(world, work(slots=1))
        await world.restart()
        await world.until(lambda: any(lease.is_held for lease in world.leases()))
        (held,) = [lease for lease in world.leases() if lease.is_held]
        world.app.reload(_with(world, work(slots=2)), strategies())
        await world.app.say(Order("adopt", held.lease_id), "a person")
        await world.cycle(minutes=10)
        assert not any(lease.is_held for lease in world.leases())
        assert len(world.live()) == 2

    play(story)
