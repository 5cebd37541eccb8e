"""The daemon's own output: JSON logs of events, metrics that promtool accepts, and its key nowhere at all."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from tests.support import programs
from tests.support.launch import COLD
from tests.support.programs import LIVE, gpubid, until

NOUN_VERB = re.compile(r"[a-z]+(_[a-z]+)*\.[a-z]+(_[a-z]+)*")
READING = [
    ("check", "--json"),
    ("fleet", "--json"),
    ("plan", "--json"),
    ("explain", "--json"),
    ("ledger", "events", "--json"),
    ("ledger", "prices", "--json"),
    ("strategy", "list", "--json"),
    ("explain",),
]
SECRET = "hunter2-hunter2"
ENV = f'[workloads.train.env]\nTOKEN = "{SECRET}"\n'


def bytes_of(place: Path) -> dict[str, bytes]:
    """Return every file but the configuration, which the operator wrote."""
    return {file.name: file.read_bytes() for file in place.iterdir() if file.is_file() and file.suffix != ".toml"}


def arguments_of(daemon: programs.Daemon) -> str:
    return Path(f"/proc/{daemon.process.pid}/cmdline").read_text()


def judged(promtool: str, page: str) -> tuple[int, str]:
    done = subprocess.run([promtool, "check", "metrics"], input=page, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.long(20)
async def test_the_key_is_nowhere(tmp_path: Path) -> None:
    # The arguments of a forked program are not to be seen.
    async with programs.running(tmp_path, "--level", "DEBUG", config=LIVE + ENV, **COLD) as (market, daemon):
        await until(market.billing, "a rent")
        # Refusals and broken answers are what makes programs talkative.
        for fault in ("html_403", "malformed", "reset", "throttle_json"):
            await market.weather(fault)
            await daemon.reload()
            await daemon.until_logged("market.unavailable")
            await market.still()
        await daemon.until_logged("market.available")
        said = [(await gpubid(tmp_path, *verb)) for verb in READING]
        assert all(ran.code == 0 for ran in said), said
        arguments = arguments_of(daemon)
        page = await daemon.page()
        files = bytes_of(tmp_path)
        assert await daemon.stop() == 0
        files |= {f"{name} after the end": content for name, content in bytes_of(tmp_path).items()}
    assert any(name.endswith(".sqlite") for name in files)
    told = {
        **{f"gpubid {' '.join(verb)}": ran.out + ran.err for verb, ran in zip(READING, said, strict=True)},
        **{name: content.decode("latin-1") for name, content in files.items()},
        "arguments": arguments,
        "metrics": page,
        "logs": "\n".join(daemon.err),
        "output": "\n".join(daemon.out),
    }
    assert "decision.made" in told["logs"]
    assert [name for name, text in told.items() if DEFAULT_KEY in text] == []
    assert [name for name, text in told.items() if SECRET in text] == []


async def test_logs_are_events_in_json(tmp_path: Path) -> None:
    async with programs.running(tmp_path, "--level", "DEBUG") as (market, daemon):
        await until(market.billing, "a rent")
        await daemon.reload()
        assert await daemon.stop() == 0
    lines = [json.loads(line) for line in daemon.err]
    assert lines
    for line in lines:
        assert {"event", "level", "at"} <= line.keys(), line
        assert NOUN_VERB.fullmatch(line["event"]), line
        assert line["at"].endswith("+00:00"), line
    (reloaded,) = daemon.logs("config.reloaded")
    assert re.fullmatch("[0-9a-f]{16}", reloaded["digest"])


async def test_promtool_accepts_the_metrics(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, daemon):
        await until(market.billing, "a rent")
        page = await daemon.page()
        assert await daemon.page("/healthz") == '{"ok": true, "late": []}'
    assert re.search(r"^gpubid_\w+(\{[^}]*\})? [0-9.e+-]+$", page, re.MULTILINE)
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("THE METRICS WERE NOT CHECKED: promtool is not installed (Debian package prometheus)")
    assert judged(promtool, page) == (0, "")
