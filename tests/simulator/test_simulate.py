"""`gpubid simulate` as a program: one line, then it serves; bad input is told and ends with 2."""

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from agent.simulator import climate as climates
from tests.support.programs import PATIENCE_SECONDS

COMMAND = [sys.executable, "-m", "agent.cli.rehearsing.simulate"]


@pytest.fixture
def program() -> Iterator[subprocess.Popen[str]]:
    arguments = ["--hosts", "20", "--speed", "0", "--start", "2026-11-05T00:00:00Z", "--seed", "3"]
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        yield running
        running.kill()


def fetch(url: str, key: str = "") -> Any:
    asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"} if key else {})  # noqa: S310 - loopback
    with urllib.request.urlopen(asked, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310 - loopback
        return json.loads(answer.read()), answer.headers


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_prints_one_line_serves_and_ends_with_0(program: subprocess.Popen[str], number: signal.Signals) -> None:
    assert program.stdout is not None
    urls = json.loads(program.stdout.readline())
    assert urls.keys() == {"vast_url", "vast_key", "runpod_url", "runpod_key", "control_url"}
    offers, headers = fetch(f"{urls['vast_url']}/api/v0/bundles/?q=%7B%7D")
    assert offers["offers"]
    assert headers["Date"] == "Thu, 05 Nov 2026 00:00:00 GMT"
    with pytest.raises(urllib.error.HTTPError, match="401"):
        fetch(f"{urls['runpod_url']}/v2/pods")
    assert fetch(f"{urls['vast_url']}/api/v0/users/current/", urls["vast_key"])[0]["credit"] > 0
    assert fetch(f"{urls['runpod_url']}/v2/pods", urls["runpod_key"])[0]["pods"] == []
    truth, _ = fetch(f"{urls['control_url']}/truth")
    assert truth["contracts"] == truth["runpod"]["contracts"] == []
    program.send_signal(number)
    out, err = program.communicate(timeout=PATIENCE_SECONDS)
    assert (program.returncode, out, err) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--climate", "nowhere"], "calm"),
        (["--start", "yesterday"], "ISO"),
        (["--rate-limits", "strict"], "published"),
        (["--speed", "-1"], "--speed"),
        (["--runpod-mode", "spot"], "spot_discontinued"),
        (["--hosts", "0"], "--hosts"),
        (["--vast-port", "70000"], "--vast-port"),
    ],
)
def test_bad_input_is_told_and_ends_with_2(arguments: list[str], word: str) -> None:
    ended = subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert word in ended.stderr
    assert "Traceback" not in ended.stderr


def test_about_tells_recorded_from_assumed() -> None:
    told = subprocess.run(
        [*COMMAND, "--about"], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
    ).stdout
    assert "Recorded (" in told
    assert "Assumed (" in told


def test_help_names_the_keys_and_every_climate_with_what_it_does() -> None:
    told = subprocess.run(
        [*COMMAND, "--help"], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
    ).stdout
    words = " ".join(told.split())
    assert "vast_key" in words
    assert "runpod_key" in words
    for name in climates.names():
        assert f"{name} {climates.named(name).about}" in words


def test_weather_lists_every_fault_and_how_fields_lie() -> None:
    from agent.simulator import faults

    told = subprocess.run(
        [*COMMAND, "--weather"], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
    ).stdout
    assert [name for name in faults.PARAMETERS if f"| {name} |" not in told] == []
    assert "twice_changed" in told
