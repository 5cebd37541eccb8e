"""A service whose process dies while its container runs: it leaves the list, is restarted, and serves again elsewhere.

Nothing is played: the daemon and the service are programs over TCP, on one clock.
"""

import contextlib
import json
import re
import shlex
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent.simulator.simulated_clock import ScaledClock
from agent.simulator.vast.world import World
from tests.support import counter, guarded_fleet, programs
from tests.support.container_scene import REAL
from tests.support.guarded_fleet import OwnRoots, RealFleet
from tests.support.market import START
from tests.support.programs import LIVE, Daemon, until
from tests.support.steered import Simulator

SPEED = 30.0
DYING = 3
"""So many starts die: the first one and both restarts on the same host."""
LIVES_SECONDS = 8.0
"""Of our time, from its first answer on."""
SERVICE = """
import http.server, os, sys, threading, time
starts, dying, lives = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
number = len(os.listdir(starts))
open(os.path.join(starts, str(time.monotonic())), "w").close()

class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["SIM_PORT_8000"])), Page)
threading.Thread(target=server.serve_forever, daemon=True).start()
if number < dying:
    time.sleep(lives)
    server.shutdown()
    server.server_close()
while True:
    time.sleep(60)
"""
SERVED = """\
ports = [8000]
ready = "http"
ready_port = 8000
ready_path = "/health"
ready_within = "10m"
live_every = "1m"
live_within = "5s"
live_failures = 2
command = {command}
"""


async def listed(daemon: Daemon) -> list[str]:
    """Return the leases in the list of services."""
    rows: list[dict[str, Any]] = json.loads(await daemon.page("/services"))
    return [row["labels"]["__meta_gpubid_lease"] for row in rows]


@contextlib.asynccontextmanager
async def stage(place: Path) -> AsyncIterator[tuple[RealFleet, dict[str, str]]]:
    """Yield the fleet, and the environment of its daemon."""
    clock = ScaledClock(START, SPEED)
    registry = OwnRoots(clock, speed=SPEED, folder=place / "disks", isolates=True, most_running=4)
    (place / "starts").mkdir()
    words = counter.python(SERVICE, str(place / "starts"), str(DYING), str(LIVES_SECONDS))
    async with Simulator(World(REAL, seed=7, start=START, hosts=60), clock, seed=7, processes=registry) as simulator:
        served = SERVED.format(command=json.dumps(shlex.join(words)))
        (place / "agent.toml").write_text(LIVE.format(url=simulator.vast_url) + served)
        environment = {**guarded_fleet.environment(place, clock, SPEED), "STORY_TIMERS": "real"}
        yield RealFleet(place, simulator), environment


@pytest.mark.nightly
@pytest.mark.long(150)
async def test_a_service_that_dies_leaves_the_list_and_serves_again_on_another_host(tmp_path: Path) -> None:
    async with stage(tmp_path) as (it, environment), programs.daemon(tmp_path, **environment) as daemon:
        (first,) = await until(lambda: listed(daemon), "a service in the list")

        async def is_gone() -> bool:
            return await listed(daemon) == []

        async def serves_elsewhere() -> bool:
            found = await listed(daemon)
            return bool(found) and first not in found

        await until(is_gone, "that the dead service leaves the list")
        states = [each.status for each in it.simulator.world.contracts.values() if each.ended is None]
        assert states == ["running"], "its container runs on"
        await until(serves_elsewhere, "a service on another host")
        rows = it.rows("SELECT lease_id, host_id, restarts FROM leases ORDER BY opened_at")
        assert [lease for lease, _, _ in rows] == [first, *await listed(daemon)]
        assert rows[0][1] != rows[1][1]
        assert (rows[0][2], rows[1][2]) == (2, 0)
        told = [reason for kind, reason in it.rows("SELECT kind, reason FROM events") if kind == "lease.unhealthy"]
        assert re.fullmatch(r"unhealthy: its service does not answer after 2 restarts; .*", told[-1])
        assert len(list((tmp_path / "starts").iterdir())) == DYING + 1
