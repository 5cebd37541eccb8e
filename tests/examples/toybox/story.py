"""One process that meets the installed Toybox as an operator does; it prints what each verb did, as JSON."""

import asyncio
import json
import os
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from agent.cli.main import app
from agent.simulator.climate_files import named
from agent.simulator.market_server import Simulator
from agent.simulator.simulated_clock import ScaledClock

PATIENCE_SECONDS = 60.0
PAUSE_SECONDS = 0.1


def served() -> Simulator:
    """Serve the simulated markets beside this thread until the process ends."""
    clock, loop = ScaledClock(), asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    simulator = Simulator.begun(named("calm"), clock, seed=7, start=clock.time(), hosts=1)
    asyncio.run_coroutine_threadsafe(simulator.start(), loop).result(PATIENCE_SECONDS)
    return simulator


def verb(*words: str) -> dict[str, Any]:
    """Run a verb to its end."""
    ran = CliRunner().invoke(app, words)
    return {"code": ran.exit_code, "said": ran.output}


def page(port: int, path: str) -> str:
    """Return a page of the daemon, or an empty text while none answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as reply:
            return str(reply.read().decode())
    except OSError:
        return ""


def asked(url: str, fields: dict[str, Any] | None = None, key: str = "") -> int:
    """Return the status of an answer: to a POST of fields, else to a GET."""
    body = None if fields is None else json.dumps(fields).encode()
    request = urllib.request.Request(url, body, {"Authorization": f"Bearer {key}"})  # noqa: S310 - loopback
    try:
        with urllib.request.urlopen(request, timeout=5) as reply:  # noqa: S310 - loopback
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


def struck(simulator: Simulator) -> list[int]:
    """Let one fault blow at Toybox; return the answers to its declaration and to the next two calls."""
    fault = {"fault": "server_error_before", "market": "toybox", "count": 1}
    account, key = f"{simulator.url('toybox')}/account", simulator.sides["toybox"].key
    return [asked(f"{simulator.control_url}/weather", fault), asked(account, key=key), asked(account, key=key)]


def watch(port: int, seen: dict[str, str]) -> None:
    """Keep the pages of the daemon once its lease runs, then end it."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until and "interruptible, running" not in seen.get("page", ""):
        time.sleep(PAUSE_SECONDS)
        seen["page"] = page(port, "/")
    seen["metrics"] = page(port, "/metrics")
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Tell the story in the present folder."""
    simulator = served()
    told: dict[str, Any] = {}
    seen: dict[str, str] = {}
    key = Path("key")
    key.write_text(simulator.sides["toybox"].key)
    key.chmod(0o600)
    given = ("--market", "toybox", "--url", simulator.url("toybox"), "--key-file", "key", "--spend")
    told["init without an answer"] = verb("init", "--yes", *given)
    told["init"] = verb("init", "--yes", *given, "--set", "room=blue")
    told["check"] = verb("check")
    told["doctor"] = verb("doctor")
    told["rehearse"] = verb("rehearse", "--climate", "toy_drought", "--hours", "1", "--json")
    told["simulate"] = verb("simulate", "--help")
    told["struck"] = struck(simulator)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = Path("agent.toml")
    config.write_text(config.read_text().replace("127.0.0.1:9477", f"127.0.0.1:{port}").replace('"15s"', '"5s"'))
    threading.Thread(target=watch, args=(port, seen), daemon=True).start()
    told["run"] = verb("run")
    told["truth"] = json.loads(json.dumps(simulator.sides["toybox"].truth()))
    config.write_text("unreadable")
    market = f"toybox={simulator.url('toybox')}"
    told["kill"] = verb("kill", "--yes", "--no-wait", "--market", market, "--credential", "key")
    told["after the kill"] = dict(simulator.sides["toybox"].truth())
    told["seen"] = seen
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
