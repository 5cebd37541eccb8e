"""Terms -> the body of a create. Terms that the market would misread are refused before anything is sent.

Invariants:
1. Every order carries a label as its name: it is how a lost answer is found again.
2. Container disk and volume are of one size, in whole gigabytes: see figures.py.
"""

import math
import shlex
from typing import Any

from agent.domain.market.tenure import Tenure
from agent.domain.work.workload import Runtype
from agent.markets import labels, market_errors
from agent.markets.port import Terms
from agent.markets.runpod import figures, names

MOUNT = "/workspace"
"""The volume's folder: its files survive a stop, the rest of the disk does not."""
SSH = "22/tcp"


def create(where: names.Pool, gpus: int, terms: Terms, label: str) -> dict[str, Any]:
    """Return the body of an on-demand order.

    Raises:
        Rejected: the market cannot carry out these terms as meant.
    """
    if terms.tenure is not Tenure.ON_DEMAND or terms.bid is not None:
        raise market_errors.Rejected("invalid_price", f"this is no order for {terms.tenure.value} at bid {terms.bid}")
    return common(where, gpus, terms, label)


def common(where: names.Pool, gpus: int, terms: Terms, label: str) -> dict[str, Any]:
    """Return the common part of every order, in the words of REST v2.

    Raises:
        Rejected: as `create`.
    """
    if not label or len(label) > labels.MAX_LABEL:
        raise market_errors.Rejected("invalid_args", f"An order needs a label of 1 to {labels.MAX_LABEL} characters.")
    if terms.login is not None:
        sentence = "runpod keeps registry logins itself: store it there and use a template, or a public image"
        raise market_errors.Rejected("invalid_args", sentence)
    size = math.ceil(terms.disk_gb)
    body: dict[str, Any] = {
        "name": label,
        "image": terms.image,
        "gpu": {"id": where.gpu_type, "count": gpus},
        "cloud": where.cloud,
        "disk": size,
        "mounts": mounts(terms),
        "env": environment(terms, label),
        "ports": ports(terms),
        "startSsh": terms.runtype in {Runtype.SSH, Runtype.SSH_DIRECT},
        "startJupyter": terms.runtype is Runtype.JUPYTER,
    }
    if where.data_center:
        body["dataCenterIds"] = [where.data_center]
    command = arguments(terms)
    if command:
        body["args"] = command
    if terms.template:
        body["templateId"] = terms.template
    return body


def mounts(terms: Terms) -> dict[str, Any]:
    """Return the mount at `MOUNT`: the network volume in place of a volume of the host, if the terms name one."""
    if terms.network_volume:
        return {"network": [{"volumeId": terms.network_volume, "path": MOUNT}]}
    return {"persistent": {"size": max(math.ceil(terms.disk_gb), figures.LEAST_VOLUME_GB), "path": MOUNT}}


def ports(terms: Terms) -> list[str]:
    """Return the ports to publish: ours over TCP, and the shell's own if there is one."""
    own = [f"{number}/tcp" for number in terms.ports]
    has_shell = terms.runtype in {Runtype.SSH, Runtype.SSH_DIRECT, Runtype.JUPYTER} or terms.ssh_keys
    return [*own, SSH] if has_shell and SSH not in own else own


def environment(terms: Terms, label: str) -> dict[str, str]:
    """Return the variables; the market's images let in the keys in PUBLIC_KEY.

    A guard keeps its facts on the volume: a stop empties the container's own disk. On a network volume, which other
    instances mount too, each lease has a folder of its own there.
    """
    keys = {"PUBLIC_KEY": "\n".join(terms.ssh_keys)} if terms.ssh_keys else {}
    own = dict(terms.environment)
    folder = f"{MOUNT}/.gpubid-guard" + (f"/{label.replace(':', '-')}" if terms.network_volume else "")
    home = {"GPUBID_GUARD_HOME": folder} if "GPUBID_GUARD" in own else {}
    return keys | home | own


def arguments(terms: Terms) -> str:
    """Return the container's command, or a shell that runs the script and stays.

    Raises:
        Rejected: the command cannot be split into words.
    """
    if terms.command:
        try:
            return shlex.join(shlex.split(terms.command))
        except ValueError as error:
            sentence = f"The command cannot be split into words ({error}); fix it."
            raise market_errors.Rejected("invalid_args", sentence) from None
    if terms.onstart:
        return shlex.join(["bash", "-c", f"{terms.onstart}\nsleep infinity"])
    return ""
