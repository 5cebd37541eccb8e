"""Terms of a rent as the market takes them: ports, ways to start, keys, private images, templates."""

import shlex
import subprocess
from typing import Any

import pytest

from agent.domain import money
from agent.domain.market.tenure import Tenure
from agent.domain.work.workload import Runtype
from agent.markets.port import Login, Terms
from agent.markets.vast import orders, reach

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJyQ me@home"


def body(**terms: Any) -> dict[str, Any]:
    return orders.create(Terms(Tenure.INTERRUPTIBLE, money.per_hour("0.2"), 16.0, "ubuntu:22.04", **terms), "label")


def test_ports_stand_among_the_variables() -> None:
    assert body(ports=(8000, 22), environment=(("A", "b"),))["env"] == {
        "A": "b",
        "-p 8000:8000": "1",
        "-p 22:22": "1",
    }


@pytest.mark.parametrize(
    ("terms", "runtype"),
    [
        ({}, "ssh"),
        ({"command": "python train.py"}, "args"),
        ({"runtype": Runtype.ARGS}, "args"),
        ({"runtype": Runtype.SSH_DIRECT}, "ssh_direc ssh_proxy"),
        ({"runtype": Runtype.JUPYTER}, "jupyter_proxy ssh_proxy"),
        ({"template": "a1b2"}, None),
        ({"template": "a1b2", "runtype": Runtype.SSH}, "ssh"),
    ],
)
def test_the_way_to_start(terms: dict[str, Any], runtype: str | None) -> None:
    made = body(**terms)
    assert made.get("runtype") == runtype
    assert made["template_hash_id"] == terms.get("template")


def test_a_private_image_is_logged_in_for_and_no_repr_shows_the_password() -> None:
    terms = {"login": Login("ghcr.io", "me", "hunter2-hunter2"), "environment": (("TOKEN", "hunter3"),)}
    assert body(**terms)["image_login"] == "-u me -p hunter2-hunter2 ghcr.io"
    shown = repr(Terms(Tenure.ON_DEMAND, None, 16.0, "x", **terms))  # type: ignore[arg-type]
    assert "hunter" not in shown


def test_keys_are_let_in_once_however_often_the_script_runs(tmp_path: Any) -> None:
    script = body(ssh_keys=(KEY, KEY + "2"), onstart="echo started")["onstart"]
    for _ in range(2):
        told = subprocess.run(
            ["/bin/sh", "-c", script], check=True, capture_output=True, text=True, env={"HOME": str(tmp_path)}
        )
        assert told.stdout == "started\n"
    assert (tmp_path / ".ssh" / "authorized_keys").read_text().splitlines() == [KEY, KEY + "2"]
    assert script.count(shlex.quote(KEY)) == 1, "a script has few characters, and some keys are long"
    assert "done" not in script, "an echo of the script would end a batch whose done_line is that word"


@pytest.mark.parametrize(
    ("told", "address", "expected"),
    [
        ({"8000/tcp": [{"HostIp": "0.0.0.0", "HostPort": "41234"}]}, "1.2.3.4", "8000/tcp=1.2.3.4:41234"),  # noqa: S104
        ({"8000/tcp": [{"HostPort": "41234"}]}, "2001:db8::1", "8000/tcp=[2001:db8::1]:41234"),
        ({"8000/tcp": None, "x": 5, "9/tcp": [{"HostPort": "0"}], "9/foo": [{"HostPort": "7"}]}, "1.2.3.4", ""),
        ({"8000/tcp": [{"HostPort": "41234"}]}, "evil host", ""),
        (None, "1.2.3.4", ""),
        (["8000"], "1.2.3.4", ""),
    ],
)
def test_where_ports_are_reached(told: Any, address: str, expected: str) -> None:
    assert reach.ports(told, address) == expected
