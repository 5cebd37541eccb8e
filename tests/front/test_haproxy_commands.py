"""The commands for HAProxy, played on a model of its servers."""

import re

from hypothesis import given
from hypothesis import strategies as st

from agent.front import haproxy_commands
from agent.front.haproxy_state import Server
from agent.front.served_leases import ServedLease

BACKEND = "gpubid_chat"
_PLACES = st.tuples(st.sampled_from(["192.0.2.1", "192.0.2.2", "2001:db8::1"]), st.integers(1, 4))
_SERVERS = st.lists(st.tuples(_PLACES, st.booleans(), st.booleans(), st.integers(0, 3)), min_size=1, max_size=6)
_REPLICAS = st.lists(st.tuples(_PLACES, st.booleans()), max_size=6, unique_by=lambda each: each[0])


def servers_of(drawn: list[tuple[tuple[str, int], bool, bool, int]]) -> list[Server]:
    return [
        Server(f"gpu{number}", *place, is_off, is_drained, sessions)
        for number, (place, is_off, is_drained, sessions) in enumerate(drawn, start=1)
    ]


def carried_out(shown: list[Server], commands: tuple[str, ...]) -> list[Server]:
    """Return the servers after the commands, as HAProxy's manual says that they work."""
    known = {server.name: server for server in shown}
    for command in commands:
        if told := re.fullmatch(rf"set server {BACKEND}/(\w+) addr (\S+) port (\d+)", command):
            old = known[told[1]]
            assert old.is_off, "the address of a server in use is not changed"
            known[told[1]] = Server(old.name, told[2], int(told[3]), old.is_off, old.is_drained, old.sessions)
        else:
            told = re.fullmatch(rf"set server {BACKEND}/(\w+) state (ready|drain|maint)", command)
            assert told is not None, command
            old = known[told[1]]
            is_off, is_drained = told[2] == "maint", told[2] == "drain"
            known[told[1]] = Server(old.name, old.address, old.port, is_off, is_drained, old.sessions)
    return list(known.values())


@given(_SERVERS, _REPLICAS)
def test_the_servers_become_equal_to_the_leases(
    drawn: list[tuple[tuple[str, int], bool, bool, int]], wanted: list[tuple[tuple[str, int], bool]]
) -> None:
    shown = servers_of(drawn)
    leases = [ServedLease(f"vast-{n}", *place, is_leaving) for n, (place, is_leaving) in enumerate(wanted)]
    made = haproxy_commands.changes(shown, leases, BACKEND)
    after = carried_out(shown, made.commands)
    in_use = {(server.place, server.is_drained) for server in after if not server.is_off}
    placed = [lease for lease in leases if lease not in made.unplaced]
    assert in_use == {(lease.place, lease.is_leaving) for lease in placed}
    assert len([server for server in after if not server.is_off]) == len(placed), "no address is served twice"
    assert len(made.unplaced) == max(0, len(leases) - len(shown))
    again = haproxy_commands.changes(after, leases, BACKEND)
    assert again.commands == ()


def test_a_lease_keeps_its_server_and_the_new_one_is_ready_before_the_old_one_drains() -> None:
    shown = servers_of([(("192.0.2.1", 1), False, False, 2), (("192.0.2.9", 9), True, False, 0)])
    old, new = ServedLease("vast-1", "192.0.2.1", 1, is_leaving=True), ServedLease("vast-2", "192.0.2.2", 2)
    assert haproxy_commands.changes(shown, [old, new], BACKEND).commands == (
        "set server gpubid_chat/gpu2 addr 192.0.2.2 port 2",
        "set server gpubid_chat/gpu2 state ready",
        "set server gpubid_chat/gpu1 state drain",
    )


def test_an_idle_server_is_taken_before_one_that_still_answers() -> None:
    shown = servers_of([(("192.0.2.1", 1), False, False, 2), (("192.0.2.2", 2), False, False, 0)])
    made = haproxy_commands.changes(shown, [ServedLease("vast-3", "192.0.2.3", 3)], BACKEND)
    assert made.commands == (
        "set server gpubid_chat/gpu2 state maint",
        "set server gpubid_chat/gpu2 addr 192.0.2.3 port 3",
        "set server gpubid_chat/gpu2 state ready",
        "set server gpubid_chat/gpu1 state maint",
    )
