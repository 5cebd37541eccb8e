"""A crash point kills the process it names and no other."""

import os
import signal
import subprocess
import sys

import pytest

from agent.act import crashpoint

SCRIPT = "from agent.act import crashpoint; crashpoint.reached('sent', 'rent'); print('alive')"


@pytest.mark.parametrize(
    ("named", "dies"), [("sent:rent", True), ("sent:rebid", False), ("replied:rent", False), (None, False)]
)
def test_it_dies_where_it_is_told_to_and_without_the_variable_nowhere(named: str | None, dies: bool) -> None:
    environment = {key: value for key, value in os.environ.items() if key != crashpoint.VARIABLE}
    environment |= {} if named is None else {crashpoint.VARIABLE: named}
    ended = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == (-signal.SIGKILL if dies else 0)
    assert ended.stdout.strip() == ("" if dies else "alive")
