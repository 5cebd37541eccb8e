"""The public ssh keys of an instance, as the market registers them: read, and add one."""

from collections.abc import Sequence
from typing import Any

import msgspec

from agent.markets import market_errors, text
from agent.markets.vast import client

MOST_KEYS = 256
MOST_KEY = 8_192


class InstanceKeys:
    """The keys of the account's instances."""

    def __init__(self, endpoints: client.VastClient) -> None:
        self._client = endpoints

    async def shown(self, instance_id: str) -> Sequence[str]:
        """Return the keys that are registered with an instance."""
        return keys(await self._client.instance_keys(instance_id))

    async def add(self, instance_id: str, key: str) -> None:
        """Register one key with an instance; the keys that it has stay."""
        await self._client.add_key(instance_id, key)


def keys(raw: bytes) -> Sequence[str]:
    """Return the keys in an answer: a list of them, which the market writes as JSON inside a text.

    Raises:
        Malformed: it has no such list.
    """
    try:
        said = msgspec.json.decode(raw)
        rows = said.get("ssh_keys") if isinstance(said, dict) else None
        rows = msgspec.json.decode(rows) if isinstance(rows, str) else rows
    except (msgspec.DecodeError, RecursionError):
        rows = None
    if not isinstance(rows, list):
        raise market_errors.Malformed("vast answered a request for an instance's ssh keys with no list of them.")
    return tuple(key for row in rows[:MOST_KEYS] if (key := _key(row)))


def _key(row: Any) -> str:  # noqa: ANN401 - the vendor's JSON
    found = row if isinstance(row, str) else None
    if isinstance(row, dict):
        found = next((row[name] for name in ("public_key", "ssh_key", "key") if isinstance(row.get(name), str)), None)
    return text.clean(found, MOST_KEY) if found else ""
