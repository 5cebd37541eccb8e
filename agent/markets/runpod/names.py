"""The market's names of GPU models and data centres -> ours.

Invariants:
1. A model has the name that other markets give it, so that one workload finds it on all of them.
2. A pool's id can be read back: it contains everything that an order needs.
"""

import re
from dataclasses import dataclass

from agent.domain.market import gpu, host
from agent.domain.market.gpu import GpuModel
from agent.markets import text

_ALIASES = {
    "A100 SXM": "A100 SXM4",
    "A100 SXM4 80GB": "A100 SXM4",
    "A100 80GB PCIE": "A100 PCIE",
    "H100 80GB HBM3": "H100 SXM",
    "H200 SXM": "H200",
    "RTX PRO 6000": "RTX PRO 6000 WS",
    "RTX PRO 6000 WK": "RTX PRO 6000 WS",
    "RTX PRO 6000 MAXQ": "RTX PRO 6000 MAX Q",
    "RTX PRO 6000 BLACKWELL WORKSTATION EDITION": "RTX PRO 6000 WS",
    "RTX PRO 6000 BLACKWELL SERVER EDITION": "RTX PRO 6000 S",
    "RTX PRO 6000 BLACKWELL MAX Q WORKSTATION EDITION": "RTX PRO 6000 MAX Q",
    "INSTINCT MI300X OAM": "MI300X",
    "V100 FHHL": "V100",
    "V100 SXM2": "V100",
    "V100 SXM2 32GB": "V100",
    "V100 PCIE 16GB": "V100",
    "V100 SXM2 16GB": "V100",
    "V100 FHHL 16GB": "V100",
}
_COUNTRY = re.compile(r"[A-Z]{2,4}-([A-Z]{2})-[A-Z0-9]+")
_OWN_COUNTRY = frozenset({"US", "CA"})
"""Regions that are a country: the second part of US-KS-2 is not a country."""


def model(name: str) -> GpuModel:
    """Return our name of a model from the market's short or long one."""
    own = gpu.model(text.clean(name, 64))
    return gpu.model(_ALIASES.get(own, own))


def region(data_center: str) -> str:
    """Return the data centre with its country, if the id has one: "EU-RO-1, RO"."""
    country = _country(data_center)
    return f"{data_center}, {country}" if country else data_center


def _country(data_center: str) -> str:
    first = data_center.partition("-")[0]
    if first in _OWN_COUNTRY:
        return first
    match = _COUNTRY.fullmatch(data_center)
    return match[1] if match else ""


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool of the market: hosts of one GPU type in one of its clouds and, if known, one data centre."""

    cloud: str
    gpu_type: str
    data_center: str = ""

    @property
    def host_id(self) -> str:
        """The pool as a host's id: the market names no host before the rent."""
        parts = [self.cloud, self.gpu_type.replace(" ", "_")]
        return host.POOL + "/".join([*parts, self.data_center] if self.data_center else parts)

    def offer_id(self, gpus: int) -> str:
        """Return the id of an offer of this many GPUs from this pool."""
        return f"{self.host_id}#{gpus}"


def pool(host_id: str) -> Pool | None:
    """Return the pool of a host's id, or None for another id."""
    parts = host_id.removeprefix(host.POOL).split("/")
    if not host.is_pool(host_id) or len(parts) not in {2, 3} or not all(parts):
        return None
    return Pool(parts[0], parts[1].replace("_", " "), parts[2] if len(parts) == 3 else "")  # noqa: PLR2004
