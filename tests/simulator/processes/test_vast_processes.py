"""Real processes in Vast's containers, over its real HTTP API: evictions, resumes, disks, logs, ports, variables."""

import json
import shlex
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support import counter
from tests.support.container_scene import real_market
from tests.support.programs import until

SERVE = """
import os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"a child's own page")
HTTPServer(("127.0.0.1", int(os.environ["SIM_PORT_8080"])), Page).serve_forever()
"""


@pytest.mark.parametrize("isolates", [True, False], ids=["namespace", "group"])
async def test_an_outbid_kills_and_a_resume_goes_on_with_the_disk(tmp_path: Path, *, isolates: bool) -> None:
    async with real_market(tmp_path / "disks", isolates=isolates) as scene:
        made = await scene.counting()
        assert counter.alive(scene.mark)
        rival = await scene.outbid(made)
        assert counter.alive(scene.mark) == []
        count = counter.counted(scene.disk(made))
        record = await scene.market.instance(made)
        assert (record["actual_status"], record["intended_status"]) == ("exited", "stopped")
        await scene.resumed(made, rival)
        await scene.printed(made, f"from {count}")
        await until(lambda: counter.counted(scene.disk(made)) > count, "a higher count")
        await scene.market.call("DELETE", f"/instances/{made}/", {})
        assert counter.alive(scene.mark) == []
        assert not scene.disk(made).exists()
    assert list((tmp_path / "disks").iterdir()) == []


async def test_a_move_begins_on_an_empty_disk_and_a_dead_host_takes_its_own_along(tmp_path: Path) -> None:
    async with real_market(tmp_path) as scene:
        old = await scene.counting()
        machine = (await scene.market.instance(old))["machine_id"]
        new = await scene.counting()
        assert "from 0" in await scene.log(new)
        await scene.market.weather("host_gone", machine_id=machine)
        assert not scene.disk(old).exists()
        assert len(counter.alive(scene.mark)) == 1
        assert scene.disk(new).exists()


async def test_a_silent_host_stops_nothing(tmp_path: Path) -> None:
    async with real_market(tmp_path) as scene:
        made = await scene.counting()
        running = counter.alive(scene.mark)
        silence = await scene.market.weather("host_offline")
        assert (await scene.market.instance(made))["actual_status"] == "offline"
        count = counter.counted(scene.disk(made))
        await until(lambda: counter.counted(scene.disk(made)) > count, "a higher count")
        await scene.market.control("DELETE", f"/weather/{silence}")
        assert (await scene.market.instance(made))["actual_status"] == "running"
        assert counter.alive(scene.mark) == running


async def test_onstart_runs_at_each_start_and_the_container_stays_when_it_ends(tmp_path: Path) -> None:
    script = "echo started >> starts\necho lines: $(wc -l < starts)\n"
    async with real_market(tmp_path) as scene:
        made = await scene.started(onstart=script)
        await scene.printed(made, "lines: 1")

        async def is_idle() -> bool:
            return bool((await scene.market.instance(made))["gpu_util"] == 0.0)

        await until(is_idle, "idle GPUs")
        assert (await scene.market.instance(made))["actual_status"] == "running"
        await scene.resumed(made, await scene.outbid(made))
        assert await scene.printed(made, "lines: 2") == ["lines: 2"]


@pytest.mark.parametrize("isolates", [True, False], ids=["namespace", "group"])
async def test_what_onstart_leaves_behind_works_on_and_is_killed_with_the_rest(
    tmp_path: Path, *, isolates: bool
) -> None:
    async with real_market(tmp_path, isolates=isolates) as scene:
        words = shlex.join(counter.command(scene.mark))
        made = await scene.started(onstart=f"setsid {words} > out 2>&1 &\necho left")
        await scene.printed(made, "left")
        await until(lambda: counter.counted(scene.disk(made)), "a count on the disk")
        assert (await scene.market.instance(made))["gpu_util"] > 0
        await scene.market.call("PUT", f"/instances/{made}/", {"state": "stopped"})
        assert counter.alive(scene.mark) == []


async def test_a_command_that_ends_leaves_an_exited_container_on_its_gpus(tmp_path: Path) -> None:
    async with real_market(tmp_path) as scene:
        made = await scene.started(runtype="args", args=["sh", "-c", "echo my work is done; echo $$; exit 3"])

        async def exited() -> dict[str, Any] | None:
            record = await scene.market.instance(made)
            return record if record["actual_status"] == "exited" else None

        record = await until(exited, "an exited container")
        assert (record["cur_state"], record["intended_status"]) == ("running", "running")
        assert (await scene.log(made))[0] == "my work is done"
        assert (await scene.log(made, tail=1))[0].isdigit()


async def test_a_command_that_is_not_there_says_so(tmp_path: Path) -> None:
    async with real_market(tmp_path) as scene:
        made = await scene.started(runtype="args", args=["no-such-program"])

        async def log() -> list[str]:
            return await scene.log(made)

        assert "cannot start 'no-such-program'" in (await until(log, "a line"))[0]


async def test_the_child_has_the_tenants_variables_and_the_markets_and_nothing_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUBID_SECRET", "not for a tenant")
    code = "import json, os; print(json.dumps([dict(os.environ), os.getcwd(), sorted(os.listdir('/proc/self/fd'))]))"
    async with real_market(tmp_path) as scene:
        made = await scene.started(
            runtype="args", args=counter.python(code), env={"EPOCHS": "3", "-p 8080:8080": "1", "HOME": "/nowhere"}
        )

        async def told() -> Any:
            lines = await scene.log(made)
            return json.loads(lines[0]) if lines else None

        env, place, descriptors = await until(told, "the variables")
        port = env.pop("SIM_PORT_8080")
        assert env.pop("VAST_TCP_PORT_8080") == port
        monkeypatch.undo()
        # Python in an empty environment sets its locale for the programs that it starts.
        env.pop("LC_CTYPE", None)
        assert env.pop("PATH")
        assert json.loads(env.pop("SIM_GPUS"))["count"] == 1
        gate = scene.market.simulator.gate
        assert env == {
            "EPOCHS": "3",
            "HOME": place,
            "SIM_DISK": place,
            "SIM_SPEED": "30",
            "CONTAINER_ID": str(made),
            "CONTAINER_API_KEY": gate.instance_key(made),
            "VAST_CONTAINERLABEL": f"C.{made}",
            "PUBLIC_IPADDR": "127.0.0.1",
        }
        assert place == str(scene.disk(made))
        # Its own three, and the folder that it is reading.
        assert len(descriptors) == 4
        assert gate.key not in json.dumps(env)


async def test_the_ports_of_the_record_are_the_childs(tmp_path: Path) -> None:
    async with real_market(tmp_path) as scene:
        args = counter.python(SERVE, scene.mark)
        made = await scene.started(runtype="args", args=args, env={"-p 8080:8080": "1"})
        record = await scene.market.instance(made)
        url = f"http://{record['public_ipaddr']}:{record['ports']['8080/tcp'][0]['HostPort']}/"

        async def page() -> bytes:
            try:
                async with scene.market.session.get(url) as answer:
                    return await answer.read()
            except aiohttp.ClientConnectionError:
                return b""

        assert await until(page, "the child's page") == b"a child's own page"
        await scene.outbid(made)
        assert await page() == b""


async def test_a_log_keeps_its_newest_lines_within_its_bounds(tmp_path: Path) -> None:
    code = "for n in range(60_000): print('line', n)\nprint('x' * 100_000)\nprint('the end', flush=True)"
    async with real_market(tmp_path) as scene:
        made = await scene.started(onstart=shlex.join(counter.python(code)))
        lines = await scene.printed(made, "the end")
        assert lines[-1] != "line 0"
        assert sum(map(len, lines)) < 300_000
        assert max(map(len, lines)) <= 8 * 1024


async def test_more_containers_than_may_run_say_so_and_exit(tmp_path: Path) -> None:
    async with real_market(tmp_path, most_running=1) as scene:
        await scene.counting()
        second = await scene.rented(runtype="args", args=["sleep", "60"])

        async def log() -> list[str]:
            await scene.market.advance(60.0)
            return await scene.log(second)

        assert "at most 1 containers" in (await until(log, "a refusal"))[0]
        assert (await scene.market.instance(second))["actual_status"] == "exited"


async def test_a_notice_is_weather(tmp_path: Path) -> None:
    """SIGTERM comes with the loss; SIGKILL comes when the notice is over."""
    code = (
        "import signal, sys, time\n"
        "def told(*_):\n    open('told', 'w').close()\n"
        "signal.signal(signal.SIGTERM, told)\nprint('ready', flush=True)\nwhile True: time.sleep(1)"
    )
    async with real_market(tmp_path) as scene:
        await scene.market.weather("interruption_notice", notice=20)
        made = await scene.started(runtype="args", args=counter.python(code, scene.mark))
        await scene.printed(made, "ready")
        await scene.outbid(made)
        assert (await scene.market.instance(made))["actual_status"] == "exited"
        await until((scene.disk(made) / "told").exists, "the notice on the disk")
        assert counter.alive(scene.mark)
        await scene.market.advance(20.0)
        assert counter.alive(scene.mark) == []


async def test_a_reboot_keeps_the_disk_and_a_recycle_does_not(tmp_path: Path) -> None:
    async with real_market(tmp_path) as scene:
        made = await scene.counting()
        await scene.market.call("PUT", f"/instances/reboot/{made}/", {})
        assert counter.alive(scene.mark) == []
        count = counter.counted(scene.disk(made))
        await scene.market.running(made)
        await scene.printed(made, f"from {count}")
        await scene.market.call("PUT", f"/instances/recycle/{made}/", {})
        assert counter.counted(scene.disk(made)) == 0
        await scene.market.running(made)
        await scene.printed(made, "from 0")
