"""A network volume of the workloads, and up to when the ledger has its cost."""

from datetime import datetime

import msgspec

from agent.domain.money import FREE, UsdPerHour

KEY = "network_volume/"
"""Before a volume's name: its key among the ledger's single facts."""


class MeteredVolume(msgspec.Struct, frozen=True):
    """A volume that bills past every lease: at `rate` since `until`, to `workloads` in equal parts, on `market`.

    Without workloads the configuration does not name it any more, or not its price, and it costs nothing. `market` is
    empty if it is not known.
    """

    name: str
    until: datetime
    rate: UsdPerHour = FREE
    workloads: tuple[str, ...] = ()
    market: str = ""


def encoded(volume: MeteredVolume) -> str:
    """Return a volume as a text of the ledger."""
    return msgspec.json.encode(volume).decode()


def decoded(text: str) -> MeteredVolume:
    """Return the volume in a text of the ledger."""
    return msgspec.json.decode(text, type=MeteredVolume)
