"""The account's network volumes and the data centre of each: an instance mounts one only there."""

from collections.abc import Mapping

import msgspec

from agent import clock as clocks
from agent.markets import market_errors, text, tolerant_rows
from agent.markets.runpod import client

KEPT_SECONDS = 300.0
"""A volume never leaves its data centre, so only a new one is seen late."""


class _Volume(msgspec.Struct):
    id: str
    dataCenter: str  # noqa: N815 - the vendor's spelling


class NetworkVolumes:
    """The account's volumes, asked for from the first workload on that names one."""

    def __init__(self, endpoints: client.RunPodClient, clock: clocks.Clock) -> None:
        self._client = endpoints
        self._clock = clock
        self._is_wanted = False
        self._asked_at: float | None = None
        self._places: dict[str, str] = {}

    async def by_data_center(self, wanted: str) -> Mapping[str, tuple[str, ...]]:
        """Return the ids of the volumes of each data centre; none before a workload wanted one.

        A question that wants none is answered by the last known list if the market does not show it now.

        Raises: Throttled, Unavailable, Malformed.
        """
        self._is_wanted = self._is_wanted or bool(wanted)
        if not self._is_wanted:
            return {}
        now = self._clock.monotonic()
        if self._asked_at is None or now - self._asked_at >= KEPT_SECONDS:
            try:
                self._places = await self._read()
                self._asked_at = now
            except market_errors.MarketError:
                if wanted:
                    raise
        found: dict[str, tuple[str, ...]] = {}
        for volume_id, data_center in self._places.items():
            found[data_center] = (*found.get(data_center, ()), volume_id)
        return found

    async def _read(self) -> dict[str, str]:
        try:
            return _places(await self._client.network_volumes())
        except market_errors.Unauthorized as error:
            # A key may be good for instances and not for volumes: what proves a bad key is the listing alone.
            sentence = f"runpod does not show the network volumes to this key; widen its scope ({error})"
            raise market_errors.Unavailable(sentence) from None


def _places(raw: bytes) -> dict[str, str]:
    rows = tolerant_rows.rows(raw, "networkVolumes", "The list of network volumes")
    try:
        volumes = msgspec.convert(rows, list[_Volume], strict=False)
    except msgspec.ValidationError:
        raise market_errors.Malformed("The network volumes are not what runpod documents.") from None
    return {text.clean(each.id, 64): text.clean(each.dataCenter, 32) for each in volumes}
