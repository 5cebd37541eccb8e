"""What befalls guards between two cycles: their bucket, the lies of their hosts, and edits of their tables."""

import dataclasses
import datetime as dt
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from agent.config.settings import Config
from agent.domain.work.guard_terms import Accept, GuardTerms
from agent.domain.work.workload import Workload
from tests.disasters import edits
from tests.disasters.edits import pick
from tests.disasters.guards import host_lies
from tests.disasters.story import Deed

if TYPE_CHECKING:
    from tests.disasters.play import Player

Act = Callable[[Deed, "Player"], Awaitable[None]]


# --- the bucket -----------------------------------------------------------------------------------------------------
async def _away(deed: Deed, player: "Player") -> None:
    guards, work = player.stage.guards, pick(_guarded(player.config), deed.pick)
    if guards is not None and work is not None:
        guards.bucket.leave(work.name, player.stage.clock.time() + 30.0 + 3600.0 * deed.amount**2)


async def _slow(deed: Deed, player: "Player") -> None:
    guards, work = player.stage.guards, pick(_guarded(player.config), deed.pick)
    if guards is not None and work is not None:
        until = player.stage.clock.time() + 60.0 + 3600.0 * deed.amount**2
        guards.bucket.slow_down(work.name, until, (0.3, 2.0, 8.0, 40.0)[deed.pick % 4])


async def _daemon_away(deed: Deed, player: "Player") -> None:
    """The daemon's machine is dead for hours: as long as a dead man's switch waits, or longer."""
    await player.bury(seconds=1.0)
    player.stage.clock.advance(1800.0 + 9000.0 * deed.amount)


# --- hosts that lie -------------------------------------------------------------------------------------------------
def _lie(lie: str) -> Act:
    async def told(deed: Deed, player: "Player") -> None:
        guards = player.stage.guards
        if guards is None:
            return
        if lie in host_lies.OF_CHECKS:
            # A host is checked as it starts: those of the next hours are meant.
            guards.check_lies.add(lie)
            player.later(player.stage.clock.time() + 3600.0 * deed.amount, lambda: guards.check_lies.discard(lie))
            return
        alive = (guards.guard_of(box) for box in player.truth.live if box.is_running)
        guard = pick([each for each in alive if each is not None], deed.pick)
        if guard is not None:
            guard.tell(lie)
            if lie == "false_done":
                guards.claimed.add(guard.root)

    return told


# --- files ----------------------------------------------------------------------------------------------------------
def _guarded(config: Config) -> list[Workload]:
    return [work for work in config.workloads if work.guard is not None]


def _edit(change: Callable[[Deed, GuardTerms], GuardTerms | None]) -> Act:
    def changed(deed: Deed, config: Config) -> Config:
        chosen = pick(_guarded(config), deed.pick)
        works = tuple(
            dataclasses.replace(work, guard=change(deed, work.guard)) if work is chosen and work.guard else work
            for work in config.workloads
        )
        return dataclasses.replace(config, workloads=works)

    return edits.edit(changed)


def _paths(deed: Deed, terms: GuardTerms) -> GuardTerms:
    return dataclasses.replace(terms, paths=("/ckpt", "/more")[: 1 + deed.pick % 2])


def _accept(deed: Deed, terms: GuardTerms) -> GuardTerms:
    return dataclasses.replace(terms, accept=list(Accept)[deed.pick % 3])


def _deadman(deed: Deed, terms: GuardTerms) -> GuardTerms:
    return dataclasses.replace(terms, deadman=(None, dt.timedelta(hours=1), dt.timedelta(hours=2))[deed.pick % 3])


def _final_within(deed: Deed, terms: GuardTerms) -> GuardTerms:
    return dataclasses.replace(terms, final_within=dt.timedelta(seconds=(0, 8, 120)[deed.pick % 3]))


DEEDS: Mapping[str, Act] = {
    "bucket_away": _away,
    "bucket_slow": _slow,
    "daemon_away": _daemon_away,
    "edit_paths": _edit(_paths),
    "edit_accept": _edit(_accept),
    "edit_deadman": _edit(_deadman),
    "edit_final_within": _edit(_final_within),
    "edit_guard_away": _edit(lambda _, __: None),
    **{f"lie_{lie}": _lie(lie) for lie in host_lies.ALL},
}
