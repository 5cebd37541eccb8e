"""The market's instance types, regions and bid names -> our models, pools and labels.

Invariants:
1. A model has the name that other markets give it, so that one workload finds it on all of them.
2. A pool's id can be read back: it contains everything that an order needs.
3. A bid's name is the short form of our label (`markets/labels.py`), of at most 41 lower-case letters, digits and
   hyphens. It has no room for the workload, which the ledger knows by the intent (`observe/short_labels.py`).
"""

import re
from dataclasses import dataclass

from agent.domain.market import gpu, host
from agent.domain.market.gpu import GpuModel
from agent.markets import labels, market_errors, text

_BUSES = {
    "A100": {"SXM": "A100 SXM4", "PCIE": "A100 PCIE"},
    "H100": {"SXM": "H100 SXM", "PCIE": "H100 PCIE", "NVL": "H100 NVL"},
    "H200": {"NVL": "H200 NVL"},
}
"""Cards that are sold on different buses; elsewhere the card alone is the model."""
_BUS = re.compile(r"SXM|PCIE|NVL")
_MEMORY = re.compile(r"\d{1,4} ?GB")
_CARD = re.compile(
    r"(?<![A-Z0-9])(GB200|GB300|GH200|B200|B300|H100|H200|A100|A10G?|A30|A40|L40S?|L4|V100|T4)(?![0-9A-Z])"
)
_IDENTIFIER = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_COUNTRY = re.compile(r"(us|ca|uk|fr|de|nl|fi|se|no|is|jp|in|au|kr|sg)-")
"""Regions that begin with a country; "eu" and "me" are none."""
_PARTS = 2


def model(gpu_type: str, socket: str, type_name: str) -> GpuModel:
    """Return our name of the GPU of an instance type; an empty text means that the market does not say."""
    words = text.clean(f"{gpu_type} {socket} {type_name}", 200).upper().replace(".", " ")
    card = _CARD.search(words)
    bus = _BUS.search(words)
    if card is None:
        return gpu.model(_MEMORY.sub(" ", text.clean(gpu_type or type_name, 64).upper()))
    return gpu.model(_BUSES.get(card[1], {}).get(bus[0] if bus else "", card[1]))


def region(name: str) -> str:
    """Return the region with its country, if the name begins with one: "us-central5-a, US"."""
    match = _COUNTRY.match(name)
    return f"{name}, {match[1].upper()}" if match else name


def bid_name(label: str) -> str:
    """Return the name of a bid with our label.

    Raises:
        Rejected: the text is no label of ours, so that the bid could never be found again.
    """
    parsed = labels.parse(label)
    name = labels.short_text(parsed) if parsed is not None else ""
    if not name or len(name) > labels.MAX_SHORT_LABEL:
        sentence = f"A bid at mithril needs a label of gpubid, and a name of {labels.MAX_SHORT_LABEL} characters."
        raise market_errors.Rejected("invalid_args", sentence)
    return name


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool of the market: the machines of one instance type in one region."""

    region: str
    instance_type: str

    @property
    def host_id(self) -> str:
        """The pool as a host's id: the market names no host before the rent, and none after it."""
        return f"{host.POOL}{self.region}/{self.instance_type}"

    @property
    def offer_id(self) -> str:
        """The id of the pool's one offer."""
        return f"{self.instance_type}@{self.region}"


def pool_of(region_name: str | None, instance_type: str | None) -> Pool | None:
    """Return the pool of a row, or None if its region or type is missing or no identifier."""
    parts = region_name or "", instance_type or ""
    return Pool(*parts) if all(_IDENTIFIER.fullmatch(part) for part in parts) else None


def pool(host_id: str) -> Pool | None:
    """Return the pool of a host's id, or None for another id."""
    parts = host_id.removeprefix(host.POOL).split("/")
    if not host.is_pool(host_id) or len(parts) != _PARTS:
        return None
    return pool_of(*parts)
