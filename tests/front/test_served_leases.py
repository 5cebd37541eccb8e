"""Which leases a proxy is given, and the lists that other proxies read."""

import json
from typing import Any

import pytest

from agent.config.front_settings import Format
from agent.domain.record.lease import LeaseState
from agent.front import proxy_formats
from agent.front.served_leases import ServedLease, served_leases
from tests.support import builders

WORK = builders.workload(ports=(8000,))
PLACE = {"ports": "22/tcp=8.8.8.8:1022 8000/tcp=8.8.8.8:41000"}


def found(**changes: Any) -> list[tuple[str, int]]:
    return [each.place for each in served_leases([builders.lease(**{**PLACE, **changes})], WORK, 8000)]


def test_a_useful_lease_is_served_at_its_public_address() -> None:
    assert found() == [("8.8.8.8", 41000)]
    assert found(ports="8000/tcp=[2001:4860:4860::8888]:41000") == [("2001:4860:4860::8888", 41000)]


@pytest.mark.parametrize(
    "changes",
    [
        {"state": LeaseState.PAUSED},
        {"is_held": True},
        {"ports": ""},
        {"ports": "8001/tcp=8.8.8.8:41000"},
        *({"ports": f"8000/tcp={place}"} for place in ("10.0.0.1:80", "127.0.0.1:80", "box.example:80", "8.8.8.8:0")),
        *({"ports": f"8000/tcp={place}"} for place in ("8.8.8.8:80;show", "8.8.8.8:99999", "8.8.8.8:²", "8.8.8.8")),
    ],
    ids=str,
)
def test_what_is_not_useful_or_not_public_is_none(changes: dict[str, Any]) -> None:
    assert found(**changes) == []


def test_a_market_on_this_machine_may_have_its_instances_here() -> None:
    lease = builders.lease(ports="8000/tcp=127.0.0.1:80")
    assert [each.place for each in served_leases([lease], WORK, 8000, may_be_local={"vast"})] == [("127.0.0.1", 80)]


def test_two_leases_at_one_address_are_served_once() -> None:
    """The market lists a released instance's address for another one before it drops the first."""
    leases = [builders.lease(number, **PLACE) for number in (1, 2)]
    assert [each.lease_id for each in served_leases(leases, WORK, 8000, {"vast-1"})] == ["vast-1"]


def test_lists_name_every_lease_that_stays() -> None:
    some = (
        ServedLease("a", "8.8.8.8", 80),
        ServedLease("b", "2001:db8::1", 81),
        ServedLease("c", "9.9.9.9", 82, is_leaving=True),
    )
    traefik = json.loads(proxy_formats.written("chat", some, Format.TRAEFIK))
    servers = [{"url": "http://8.8.8.8:80"}, {"url": "http://[2001:db8::1]:81"}]
    assert traefik == {"http": {"services": {"gpubid_chat": {"loadBalancer": {"servers": servers}}}}}
    caddy = json.loads(proxy_formats.written("chat", some, Format.CADDY))
    assert caddy == [{"dial": "8.8.8.8:80"}, {"dial": "[2001:db8::1]:81"}]
