"""A crash point kills the process it names and no other."""

import os
import signal
import subprocess
import sys

import pytest

from agent.act import crashpoint

SCRIPT = "from agent.act import crashpoint; crashpoint.reached('sent', 'rent'); print('alive')"


@pytest.mark.parametrize(("named", "dies"), [("sent:rent", True), ("sent:rebid", False), ("replied:rent", False)])
def test_it_dies_where_it_is_told_to(named: str, dies: bool) -> None:
    environment = {**os.environ, crashpoint.VARIABLE: named}
    ended = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == (-signal.SIGKILL if dies else 0)
    assert ended.stdout.strip() == ("" if dies else "alive")


def test_without_the_variable_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(crashpoint.VARIABLE, raising=False)
    crashpoint.reached("sent", "rent")
