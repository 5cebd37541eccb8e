"""The keys of an instance in the market's answer: a list of them, which it writes as JSON inside a text."""

import json

import pytest

from agent.markets.market_errors import Malformed
from agent.markets.vast import instance_keys

KEY = "ssh-ed25519 AAAA me"


@pytest.mark.parametrize(
    "said",
    [
        {"success": True, "ssh_keys": json.dumps([{"id": 1, "name": "my-key", "public_key": KEY}])},
        {"success": True, "ssh_keys": [{"id": 1, "public_key": KEY}]},
        {"ssh_keys": json.dumps([KEY])},
        {"ssh_keys": [{"ssh_key": f"  {KEY}\n\x1b[2J"}, {"id": 7}, 5, None, {"public_key": 3}]},
    ],
)
def test_keys_are_read_in_each_shape(said: object) -> None:
    assert [key[: len(KEY)] for key in instance_keys.keys(json.dumps(said).encode())] == [KEY]


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b'{"ssh_keys": "no list"}', b'{"ssh_keys": {}}', b"[" * 5000])
def test_answer_without_a_list_proves_no_key_missing(raw: bytes) -> None:
    with pytest.raises(Malformed):
        instance_keys.keys(raw)


def test_a_flood_of_keys_is_bounded() -> None:
    raw = json.dumps({"ssh_keys": ["x" * 100_000] * 1_000}).encode()
    found = instance_keys.keys(raw)
    assert len(found) == instance_keys.MOST_KEYS
    assert max(map(len, found)) == instance_keys.MOST_KEY
