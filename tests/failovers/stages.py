"""The stages of the other ways: a market, two boxes, and servers or a network that can be broken."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from tests.failovers import ways
from tests.failovers.rig import Rig, rig
from tests.failovers.ways import Passed
from tests.support import engines, network, ports, postgres
from tests.support.postgres import Server
from tests.support.standby_names import set_names

MOST_AWAY_SECONDS = 6.0
"""A dead server is started again, or its replica is promoted, after so long at most."""
MOST_CUT_SECONDS = 40.0
"""A standby needs 17 s or less to replace a leader that is cut off."""
REPLICA = "second"

Once = Callable[[Random], Awaitable[Passed]]
Stage = Callable[[Path, int], contextlib.AbstractAsyncContextManager[tuple[Rig, Once]]]


@contextlib.asynccontextmanager
async def frozen(place: Path, number: int) -> AsyncIterator[tuple[Rig, Once]]:
    """Each leader is stopped, replaced and woken."""
    with engines.serving() as url:
        async with rig(place, url, seed=number + 1) as made:
            yield made, lambda chance: ways.freeze(made, chance)


@contextlib.asynccontextmanager
async def server(place: Path, number: int) -> AsyncIterator[tuple[Rig, Once]]:
    """The server dies each time, and is started again after a while."""
    with postgres.serving() as only:
        engines.make_role(only.url)
        async with rig(place, engines.role_url(only.url), seed=number + 1) as made:

            async def once(chance: Random) -> Passed:
                async def blows() -> None:
                    await asyncio.to_thread(only.kill)
                    await asyncio.sleep(chance.uniform(0.0, MOST_AWAY_SECONDS))
                    await asyncio.to_thread(only.start)

                return await ways.strike(made, chance, blows)

            yield made, once


@contextlib.asynccontextmanager
async def primary(place: Path, number: int) -> AsyncIterator[tuple[Rig, Once]]:
    """The primary dies each time, its synchronous replica is promoted, and the dead one follows that from then on."""
    with postgres.serving() as first, postgres.following(first, REPLICA) as second:
        engines.make_role(first.url)
        set_names(first.url, REPLICA)
        servers = [first, second]
        async with rig(place, _either(first, second), seed=number + 1) as made:

            async def once(chance: Random) -> Passed:
                async def blows() -> None:
                    await asyncio.to_thread(servers[0].kill)
                    await asyncio.sleep(chance.uniform(0.0, MOST_AWAY_SECONDS))
                    await asyncio.to_thread(servers[1].promote)

                passed = await ways.strike(made, chance, blows)
                servers.reverse()
                await asyncio.to_thread(_follow, *servers)
                # A leader that has just seen it follow without confirming pays for nothing, also after a failover.
                await made.until(_pays, "that the leader has seen the replica confirm")
                return passed

            yield made, once


@contextlib.asynccontextmanager
async def cut(place: Path, number: int) -> AsyncIterator[tuple[Rig, Once]]:
    """The wire of the leader's box is cut for a while, from the market and from the server."""
    port = ports.free()
    with network.network(port) as wires, postgres.serving(wires.address) as only:
        engines.make_role(only.url)
        url = engines.role_url(only.url).replace("127.0.0.1", wires.address)
        async with rig(place, url, "--vast-port", str(port), seed=number + 1, networks=wires.names) as made:

            async def once(chance: Random) -> Passed:
                async def blows() -> None:
                    box = made.leader
                    wires.cut(box)
                    await asyncio.sleep(chance.uniform(0.0, MOST_CUT_SECONDS))
                    wires.join(box)

                return await ways.strike(made, chance, blows)

            yield made, once


def _pays(shown: Mapping[str, Any]) -> bool:
    return not any(each["about"] == "ledger" for each in shown["notices"])


def _either(first: Server, second: Server) -> str:
    hosts = f"127.0.0.1:{first.port},127.0.0.1:{second.port}"
    return engines.role_url(first.url).replace(f"127.0.0.1:{first.port}", hosts) + "?target_session_attrs=read-write"


def _follow(leading: Server, dead: Server) -> None:
    """Let a dead server follow the promoted one, which lets it confirm every commit, and wait until it does."""
    import psycopg

    dead.copy(leading, REPLICA)
    dead.start()
    set_names(leading.url, REPLICA)
    with psycopg.connect(leading.url, autocommit=True) as raw:
        while raw.execute("SELECT sync_state FROM pg_stat_replication").fetchall() != [("sync",)]:
            """It connects, and reads what it missed, in a moment."""


WAYS: Mapping[str, Stage] = {"frozen": frozen, "server": server, "cut": cut, "primary": primary}
