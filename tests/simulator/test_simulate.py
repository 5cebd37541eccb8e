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

COMMAND = [sys.executable, "-m", "agent.cli.simulate"]


@pytest.fixture
def program() -> Iterator[subprocess.Popen[str]]:
    arguments = ["--hosts", "20", "--speed", "0", "--start", "2026-11-05T00:00:00Z", "--seed", "3"]
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        yield running
        running.kill()


def fetch(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - loopback
        return json.loads(answer.read()), answer.headers


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_prints_one_line_serves_and_ends_with_0(program: subprocess.Popen[str], number: signal.Signals) -> None:
    assert program.stdout is not None
    urls = json.loads(program.stdout.readline())
    assert urls.keys() == {"vast_url", "runpod_url", "control_url"}
    offers, headers = fetch(f"{urls['vast_url']}/api/v0/bundles/?q=%7B%7D")
    assert offers["offers"]
    assert headers["Date"] == "Thu, 05 Nov 2026 00:00:00 GMT"
    with pytest.raises(urllib.error.HTTPError, match="401"):
        fetch(f"{urls['runpod_url']}/v2/pods")
    truth, _ = fetch(f"{urls['control_url']}/truth")
    assert truth["contracts"] == truth["runpod"]["contracts"] == []
    program.send_signal(number)
    out, err = program.communicate(timeout=20)
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
    ended = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert word in ended.stderr
    assert "Traceback" not in ended.stderr


def test_about_tells_recorded_from_assumed() -> None:
    told = subprocess.run([*COMMAND, "--about"], capture_output=True, text=True, timeout=60, check=True).stdout
    assert "Recorded (" in told
    assert "Assumed (" in told
