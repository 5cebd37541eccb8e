"""What HAProxy's socket answers: the states of servers, and text that is none."""

import pytest

from agent.front import haproxy_state
from agent.front.haproxy_state import Server, UnreadableStateError

STATES = """1
# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state and so on
3 chat 1 gpu1 192.0.2.1 2 4 1 1 1 8 2 0 6 0 0 0 - 8000 - 0 0 - - 0
3 chat 2 gpu2 2001:db8::2 2 12 1 1 1 8 2 0 6 0 0 0 - 8001 - 0 0 - - 0
3 chat 3 gpu3 127.0.0.1 0 5 1 1 4 1 0 0 14 0 0 0 - 9 - 0 0 - - 0

# pxname,svname,qcur,qmax,scur,status,weight,
chat,gpu1,1,2,3,UP 1/2,1,
chat,gpu2,0,0,1,DRAIN,1,
chat,gpu3,0,0,0,MAINT,1,
"""


def test_servers_have_their_state_and_their_requests() -> None:
    found = haproxy_state.servers(STATES, "chat")
    assert found == (
        Server("gpu1", "192.0.2.1", 8000, is_off=False, is_drained=False, sessions=4, status="UP 1/2"),
        Server("gpu2", "2001:db8::2", 8001, is_off=False, is_drained=True, sessions=1, status="DRAIN"),
        Server("gpu3", "127.0.0.1", 9, is_off=True, is_drained=False, sessions=0, status="MAINT"),
    )
    assert [server.is_up for server in found] == [True, False, False]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("Can't find backend.\n\n", "it has no backend chat"),
        ("", "its answer has no server"),
        ("Permission denied\n", "its answer has no server"),
        (STATES.replace("3 chat 1 gpu1 192.0.2.1 2 4", "3 chat 1 gpu1 192.0.2.1 2 four"), "a word where a number"),
        (STATES.replace("gpu1,1,2,3", "gpu1,1,2,many"), "a word where a number"),
        (STATES.replace(" chat ", " other "), "its answer has no server"),
    ],
)
def test_what_is_no_state_is_unknown(answer: str, told: str) -> None:
    with pytest.raises(UnreadableStateError, match=told):
        haproxy_state.servers(answer, "chat")
