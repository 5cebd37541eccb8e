"""Edited files: a person's changes of a configuration, which the daemon accepts or refuses."""

import dataclasses
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from agent.config.settings import Config
from agent.domain.work.workload import Workload
from tests.disasters.stage import strategies
from tests.disasters.story import Deed

if TYPE_CHECKING:
    from tests.disasters.play import Player


def edit(change: Callable[[Deed, Config], Config]) -> Callable[[Deed, "Player"], Awaitable[None]]:
    """Return the deed of an edit. An edit that the daemon refuses is not done."""

    async def edited(deed: Deed, player: "Player") -> None:
        after = change(deed, player.config)
        if player.app is None or any(each.is_refusal for each in player.app.findings(after)):
            return
        player.config = after
        player.app.reload(after, strategies())

    return edited


def changed(deed: Deed, config: Config, change: Callable[[Workload], Workload]) -> Config:
    """Return the configuration with one workload changed."""
    work = pick(config.workloads, deed.pick)
    works = tuple(change(each) if each is work else each for each in config.workloads)
    return dataclasses.replace(config, workloads=works)


def pick(among, pick: int):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - anything
    """Return one of many, or None of none."""
    return among[pick % len(among)] if among else None
