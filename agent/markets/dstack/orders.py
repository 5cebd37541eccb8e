"""Terms -> the order of a run. Terms that the server would misread are refused before anything is sent.

Invariants:
1. Every run is pinned to one cloud, one region, one type of machine with its card, one fleet, and a highest price. The
   server never tries it again. It may place it on the machine of a run that ended a few seconds before; the read-back
   refuses that.
2. Every run has our label as a tag, and a name that is made of it: both together prove that it is ours.
3. User and architecture are always given, and a command where the workload has one: without one of them the server asks
   the image's registry at each plan and order.
"""

import math
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

from agent.domain import money
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.work.workload import Runtype
from agent.markets import market_errors
from agent.markets.dstack import names
from agent.markets.port import Terms

USER = "root"
_STAYS = "sleep infinity"
_SCRIPT = """\
trap 'kill -INT -"$p" 2>/dev/null || kill -INT "$p"; wait "$p"; exit 130' INT
sh -c "$1" </dev/null &
p=$!
wait "$p"
exec sleep infinity"""
"""Runs a start script, gives it and all that it started the signal of a stop, and stays after it.

The job control of `sh -m` puts the script into a process group of its own, and leaves SIGINT to it.
"""
SERVICE = "service"
PROBE_SECONDS = 15
"""The most seconds between two probes by the server. It accepts 1 s and more, for the time of an answer too."""


class Bounds(NamedTuple):
    """The clouds of `[markets.dstack]` with their prices of traffic, and the regions; none means all regions."""

    backends: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    egress: Mapping[str, int] = {}
    """Micro-dollars for a gigabyte that leaves each cloud, by the operator's figures."""


def question(gpus: int, vram_mb: int, disk_gb: float, fleet: str, most: Bounds) -> dict[str, Any]:
    """Return the order of a plan that is made only to see its offers."""
    return {
        "configuration": {
            "type": "task",
            "image": "ubuntu",
            "user": USER,
            "commands": [_STAYS],
            "resources": _resources(gpus, vram_mb, disk_gb),
            "backends": list(most.backends),
            "regions": list(most.regions) or None,
            **_common(fleet, "auto"),
        }
    }


def of_cloud(backend: str) -> dict[str, Any]:
    """Return the order of a plan that lists machines of one cloud, of any kind and in no fleet."""
    anything = {
        "cpu": {"arch": "x86", "count": {"min": 1, "max": None}},
        "memory": {"min": 0, "max": None},
        "gpu": {"count": {"min": 0, "max": None}},
        "disk": {"size": {"min": 1, "max": None}},
    }
    asked = {"type": "task", "image": "ubuntu", "user": USER, "commands": [_STAYS], "resources": anything}
    return {"configuration": {**asked, "backends": [backend], "spot_policy": "auto"}}


def create(offer: Offer, terms: Terms, label: str, fleet: str) -> dict[str, Any]:
    """Return the order of a run.

    Raises:
        Rejected: the server cannot carry out these terms as meant.
    """
    where = names.pool(offer.host_id)
    if where is None:
        raise market_errors.Rejected("invalid_args", f"{offer.offer_id} is no offer of dstack.")
    most = terms.bid if where.is_spot else offer.ask
    tenure = Tenure.INTERRUPTIBLE if where.is_spot else Tenure.ON_DEMAND
    if most is None or terms.tenure is not tenure or (terms.bid is not None) is not where.is_spot:
        raise market_errors.Rejected("invalid_price", f"this is no order for {terms.tenure.value} at bid {terms.bid}")
    if terms.network_volume or terms.template:
        raise market_errors.Rejected("invalid_args", "dstack knows no network volume or template of another market.")
    if terms.runtype is Runtype.JUPYTER:
        raise market_errors.Rejected("invalid_args", "dstack starts no Jupyter; start it by the workload's command.")
    name = names.run_name(label)
    configuration = {
        **_kind(terms),
        "name": name,
        "image": terms.image,
        "user": USER,
        "commands": commands(terms),
        "env": {name: _literal(text) for name, text in terms.environment},
        "registry_auth": _login(terms),
        "resources": _resources(offer.gpus, offer.vram_mb, terms.disk_gb, where.card),
        "backends": [where.backend],
        "regions": [where.region],
        "instance_types": [where.instance_type],
        "max_price": dollars(most),
        "tags": {names.TAG: label},
        **_common(fleet, "spot" if where.is_spot else "on-demand"),
    }
    key = {"ssh_key_pub": terms.ssh_keys[0]} if terms.ssh_keys else {}
    return {"run_name": name, "configuration": configuration, **key}


def _kind(terms: Terms) -> dict[str, Any]:
    """Return the type of a run: a service where the server is to ask a page of it, without a gateway of its own."""
    if terms.page is None:
        return {"type": "task", "ports": list(terms.ports)}
    page = terms.page
    every, within = (max(1, math.ceil(span.total_seconds())) for span in (page.every, page.within))
    interval = min(every, PROBE_SECONDS) if page.every else PROBE_SECONDS
    probe = {"type": "http", "url": page.path, "interval": interval, "timeout": within, "ready_after": 1}
    return {"type": SERVICE, "port": page.port, "gateway": False, "probes": [probe]}


def commands(terms: Terms) -> list[str]:
    """Return the line that the server's shell runs; none: the image's own command runs.

    The server's runner signals that shell alone, an interactive one, which passes no signal on. So it is replaced.

    Raises:
        Rejected: the command cannot be split into words.
    """
    if terms.command:
        try:
            return [f"exec {shlex.join(shlex.split(terms.command))}"]
        except ValueError as error:
            sentence = f"The command cannot be split into words ({error}); fix it."
            raise market_errors.Rejected("invalid_args", sentence) from None
    return [f"exec {shlex.join(['sh', '-m', '-c', _SCRIPT, 'sh', terms.onstart])}"] if terms.onstart else []


def dollars(rate: UsdPerHour) -> float:
    """Return a rate as the server takes it, rounded up by less than a micro-dollar."""
    return math.nextafter(rate.micros / money.MICROS, math.inf)


def _common(fleet: str, spot_policy: str) -> Mapping[str, Any]:
    return {
        "spot_policy": spot_policy,
        "retry": False,
        "idle_duration": 0,
        "fleets": [fleet],
        "creation_policy": "reuse-or-create",
    }


def _resources(gpus: int, vram_mb: int, disk_gb: float, card: str = "") -> dict[str, Any]:
    named = {"name": [card]} if card else {}
    memory = {"min": vram_mb / 1024, "max": None} if vram_mb else None
    return {
        "cpu": {"arch": "x86", "count": {"min": 1, "max": None}},
        "memory": {"min": 0, "max": None},
        "gpu": {**named, "count": {"min": gpus, "max": gpus}, "memory": memory},
        "disk": {"size": {"min": math.ceil(disk_gb), "max": None}},
    }


def _login(terms: Terms) -> dict[str, str] | None:
    if terms.login is None:
        return None
    return {"username": _literal(terms.login.user), "password": _literal(terms.login.password)}


def _literal(text: str) -> str:
    """Return a text with its dollars doubled: the server makes one of two, and takes `${{ }}` for a secret."""
    return text.replace("$", "$$")
