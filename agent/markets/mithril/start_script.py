"""The script that a machine runs when it starts: it runs the workload's image by docker.

Invariants:
1. All texts of an operator are quoted for the shell. Values of variables and the registry's password reach docker by
   its environment and its input, never in a command line, which every process on the machine could read.
2. The script may run any number of times: it makes one container, and afterwards starts the same one again. A unit of
   systemd runs it after each boot, since a machine that was preempted or paused comes back with its boot disk alone.
3. Its first lines name the disk and the ports that were ordered, since the market's record of a bid has neither. They
   hold no secret, and they are read with bounds.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from agent.domain.work.workload import Runtype
from agent.markets import market_errors
from agent.markets.port import Terms

FOLDER = "/var/lib/gpubid"
CONTAINER = "gpubid"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TERMS = re.compile(r"^# gpubid disk_gb=(\d{1,6}(?:\.\d{1,3})?) ports=([0-9,]{0,400})$", re.MULTILINE)
_OF_DOCKER = "DOCKER_"
"""Variables that docker itself obeys, so a workload's variables may not begin like this."""
_CLIENT = f'"$docker" --config {FOLDER}/docker'
"""Docker by its path and with its own settings: the workload's variables may be PATH or HOME."""
_HEAD = 2_000
"""The ordered terms are within the first characters of a script."""
_MOST_PORT = 65_535
_SHELLS = frozenset({Runtype.SSH, Runtype.SSH_DIRECT})

_INSTALL = f"""\
set -eu
umask 077
mkdir -p {FOLDER}
if [ "$0" != {FOLDER}/start ]; then
  cat -- "$0" > {FOLDER}/start.new 2>/dev/null && mv {FOLDER}/start.new {FOLDER}/start && chmod 700 {FOLDER}/start
  printf '%s\\n' '[Unit]' 'Description=The workload of gpubid' 'After=docker.service network-online.target' \\
    'Wants=network-online.target' '[Service]' 'Type=oneshot' 'ExecStart={FOLDER}/start' '[Install]' \\
    'WantedBy=multi-user.target' > /etc/systemd/system/gpubid-workload.service
  systemctl daemon-reload && systemctl enable gpubid-workload.service || true
fi
exec 9> {FOLDER}/lock
flock 9
"""
_DOCKER = f"""\
if ! command -v docker > /dev/null; then
  apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y docker.io
fi
docker=$(command -v docker)
if docker container inspect {CONTAINER} > /dev/null 2>&1; then
  exec docker start {CONTAINER}
fi
"""


@dataclass(frozen=True, slots=True)
class OrderedTerms:
    """The terms that a script names: the size of the disk in gigabytes, and the published ports."""

    disk_gb: float
    ports: tuple[int, ...]


def text(terms: Terms) -> str:
    """Return the script of an order.

    Raises:
        Rejected: the terms cannot be carried out as meant.
    """
    if not terms.image:
        raise market_errors.Rejected("invalid_args", "A bid at mithril needs an image; it has no templates.")
    if terms.template:
        raise market_errors.Rejected("invalid_args", "mithril has no templates; name an image instead.")
    if terms.runtype is Runtype.JUPYTER:
        raise market_errors.Rejected("invalid_args", "mithril starts no Jupyter; start it by the workload's command.")
    parts = ["#!/bin/bash", _terms(terms), _INSTALL.rstrip()]
    parts += _keys(terms.ssh_keys)
    parts += [_DOCKER.rstrip(), *_login(terms), *_exports(terms), f"exec {_CLIENT} {_run(terms)}"]
    return "\n".join(parts) + "\n"


def ordered(script: str | None) -> OrderedTerms | None:
    """Return the terms that a bid's script names, or None for a script that is not ours."""
    match = _TERMS.search((script or "")[:_HEAD])
    if match is None:
        return None
    ports = (int(port) for port in match[2].split(",") if port)
    return OrderedTerms(float(match[1]), tuple(port for port in ports if 0 < port <= _MOST_PORT))


def _terms(terms: Terms) -> str:
    return f"# gpubid disk_gb={terms.disk_gb:.3f} ports={','.join(str(port) for port in terms.ports)}"


def _keys(ssh_keys: Sequence[str]) -> list[str]:
    """Return the lines that let the workload's keys in; the machine's own user is `ubuntu`."""
    if not ssh_keys:
        return []
    lines = " ".join(shlex.quote(" ".join(key.split())) for key in ssh_keys)
    known = "~ubuntu/.ssh/authorized_keys"
    return [
        f"if [ -d ~ubuntu ]; then mkdir -p ~ubuntu/.ssh; for key in {lines}; do",
        f'  grep -qxF -- "$key" {known} 2>/dev/null || printf \'%s\\n\' "$key" >> {known}',
        "done; chown -R ubuntu: ~ubuntu/.ssh; fi",
    ]


def _login(terms: Terms) -> list[str]:
    login = terms.login
    if login is None:
        return []
    command = shlex.join(["login", "--username", login.user, "--password-stdin", login.registry])
    # printf is a builtin of the shell, so the password is in no list of processes.
    return [f"printf '%s' {shlex.quote(login.password)} | {_CLIENT} {command}"]


def _exports(terms: Terms) -> list[str]:
    for name, value in terms.environment:
        if not _VARIABLE.fullmatch(name) or name.startswith(_OF_DOCKER) or "\0" in value:
            sentence = f"The variable {name[:40]!r} cannot be given to a container; rename it."
            raise market_errors.Rejected("invalid_args", sentence)
    return [f"export {name}={shlex.quote(value)}" for name, value in dict(terms.environment).items()]


def _run(terms: Terms) -> str:
    # A container that fails is started again, since the market would go on charging for a machine that does nothing.
    words = ["run", "--detach", "--name", CONTAINER, "--restart", "on-failure", "--gpus", "all", "--ipc", "host"]
    for name in dict(terms.environment):
        words += ["--env", name]
    for port in sorted(set(terms.ports)):
        words += ["--publish", f"{port}:{port}"]
    command = _command(terms)
    # A script or a shell replaces whatever the image would run by itself.
    entry = ["--entrypoint", command[0]] if command else []
    return shlex.join([*words, *entry, terms.image, *command[1:]])


def _command(terms: Terms) -> list[str]:
    """Return the container's command, or a shell that runs the script and stays; empty for the image's own command.

    Raises:
        Rejected: the command cannot be split into words.
    """
    if terms.command:
        try:
            return shlex.split(terms.command)
        except ValueError as error:
            sentence = f"The command cannot be split into words ({error}); fix it."
            raise market_errors.Rejected("invalid_args", sentence) from None
    if terms.onstart or terms.runtype in _SHELLS:
        return ["bash", "-c", f"{terms.onstart}\nsleep infinity"]
    return []
