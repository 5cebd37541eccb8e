"""Rule 9: no edit of the configuration orphans or ends a running lease.

A changed spec moves it only with `on_change`.
"""

import dataclasses
import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from agent.config.settings import Config
from agent.decide.limits.limits import Limits
from agent.decide.operators import reload
from agent.domain import money
from agent.domain.record.lease import LeaseState
from agent.domain.work.run_times.run_window import Outside, WindowRule
from agent.domain.work.run_times.running_limit import LimitOf, RunningLimit
from agent.domain.work.workload import OnChange, Workload
from tests.support import full_disk
from tests.support.losses import seeds
from tests.support.world import Rehearsed, play, strategies, work

HOUR = dt.timedelta(hours=1)
edits = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["train", "other"]),
        "was": st.sampled_from(["", "train", "nothing"]),
        "slots": st.integers(0, 3),
        "image": st.sampled_from(["pytorch/pytorch:latest", "pytorch/pytorch:nightly"]),
        "disk_gb": st.sampled_from([40, 60]),
        "max_price": st.sampled_from([money.per_hour("0.6"), money.per_hour("0.9")]),
        "is_removed": st.booleans(),
        "windows": st.sampled_from(
            [(WindowRule(cron, HOUR),) for cron in ("0 12 * * *", "30 0 * * *", "*/30 * * * *")]
        ),
        "outside": st.sampled_from(Outside),
        "max_running": st.sampled_from([(RunningLimit(most, of),) for most in (HOUR / 6, HOUR * 12) for of in LimitOf]),
    },
)
caps = st.fixed_dictionaries(
    {},
    optional={
        "per_hour": st.sampled_from([money.per_hour("0.05"), money.per_hour("5")]),
        "per_day": st.sampled_from([money.usd("0.001"), money.usd("50")]),
        "instances": st.integers(0, 4),
    },
)


def edited(config: Config, edit: dict[str, Any], limits: dict[str, Any]) -> Config:
    """Return the configuration as somebody left it."""
    kept = dict(edit)
    is_removed = kept.pop("is_removed", False)
    works: tuple[Workload, ...] = (dataclasses.replace(config.workloads[0], **kept),)
    return dataclasses.replace(config, workloads=() if is_removed else works, limits=Limits(**limits))


def renamed(config: Config, name: str, was: str) -> Config:
    """Return the configuration with its workload under another name."""
    return dataclasses.replace(config, workloads=(dataclasses.replace(config.workloads[0], name=name, was=was),))


@given(seed=seeds, slots=st.integers(1, 2), edit=edits, limits=caps)
def test_an_edit_that_is_taken_ends_nothing(
    seed: int, slots: int, edit: dict[str, Any], limits: dict[str, Any]
) -> None:
    async def story(world: Rehearsed) -> None:
        await world.until_running()
        await world.cycle(minutes=20)
        before = {lease.instance_id for lease in world.leases()}
        config = edited(world.config, edit, limits)
        refused = [found for found in world.app.findings(config) if found.is_refusal]
        if refused:
            assert all("`gpubid " in found.sentence for found in refused), "it names no way out"
            return
        world.app.reload(config, strategies())
        world.is_checked = "was" not in edit  # the world's own labels keep the old name
        await world.cycle(minutes=30)
        assert before <= {lease.instance_id for lease in world.leases() if lease.state is LeaseState.RUNNING}
        names = {work.name for work in config.workloads}
        assert {lease.slot.workload for lease in world.leases()} <= names

    play(story, seed=seed, workloads=(work(slots=slots),))


@given(seed=seeds, may_move=st.booleans(), gone=st.sampled_from([{"image": "alpine:edge"}, {"disk_gb": 60}]))
def test_a_changed_spec_moves_a_lease_only_when_told(seed: int, may_move: bool, gone: dict[str, Any]) -> None:
    async def story(world: Rehearsed) -> None:
        held = await world.until_running()
        await world.cycle(minutes=5)
        change = OnChange.MOVE if may_move else OnChange.KEEP
        new = dataclasses.replace(world.config.workloads[0], on_change=change, **gone)
        config = dataclasses.replace(world.config, workloads=(new,))
        assert not [found for found in world.app.findings(config) if found.is_refusal]
        world.app.reload(config, strategies())
        await world.cycle(minutes=90)
        (now,) = world.leases()
        assert now.state is LeaseState.RUNNING
        assert (now.lease_id != held.lease_id) is may_move
        assert (now.spec_digest == reload.spec_digest(new)) is may_move

    play(story, seed=seed)


@pytest.mark.only_sqlite
@given(seed=seeds)
def test_a_rename_that_a_full_disk_refuses_rents_nothing_beside_the_lease(seed: int) -> None:
    async def story(world: Rehearsed) -> None:
        held = await world.until_running()
        rented = len(world.contracts())  # a first one may have loaded too long
        world.is_checked = False  # the world's own labels keep the old name
        full_disk.fill(world)
        world.app.reload(renamed(world.config, "other", was="train"), strategies())
        await world.cycle(minutes=5)
        lease = world.lease()
        assert (lease.lease_id, str(lease.slot)) == (held.lease_id, "other/0")
        assert len(world.contracts()) == rented
        assert len(world.live()) == 1

    play(story, seed=seed)


@given(seed=seeds)
def test_a_reload_in_the_middle_of_a_turn_counts_from_the_next_one_on(seed: int) -> None:
    """The second rename comes while the first one is written: no cycle runs under the one with leases of the other."""

    async def story(world: Rehearsed) -> None:
        held = await world.until_running()
        rented = len(world.contracts())  # a first one may have loaded too long
        world.is_checked = False  # the world's own labels keep the old name
        first = renamed(world.config, "other", was="train")
        second = renamed(first, "third", was="other")
        world.app.reload(first, strategies())
        wire, transact = world.app.ledger._tables, world.app.ledger._tables._transact

        def reload_beside(work: Callable[[sa.Connection], Any], **words: Any) -> Any:
            wire._transact = transact  # type: ignore[method-assign]
            world.app.reload(second, strategies())
            return transact(work, **words)

        wire._transact = reload_beside  # type: ignore[method-assign]
        await world.cycle(minutes=5)
        lease = world.lease()
        assert (lease.lease_id, str(lease.slot)) == (held.lease_id, "third/0")
        assert len(world.contracts()) == rented
        assert len(world.live()) == 1

    play(story, seed=seed)
