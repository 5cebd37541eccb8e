"""What a proxy reports counts for a drain only if the write that read it asked for that drain."""

import asyncio
from pathlib import Path

import pytest

from agent.clock import SteppedClock
from agent.config.front_settings import Front
from agent.front import haproxy_socket
from agent.front.front_writer import FrontWriter
from tests.support import builders

STATE = """1
# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state and so on
3 chat 1 gpu1 192.0.2.1 2 {admin} 1 1 1 8 2 0 6 0 0 0 - 4000 - 0 0 - - 0

# pxname,svname,qcur,qmax,scur,status,weight,
chat,gpu1,0,0,{sessions},UP,1,
"""


async def test_a_write_that_began_before_a_drain_is_no_report_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where polls were further apart than `drain`, the lease was ended and its proxy had never been asked."""
    is_free, is_drained = asyncio.Event(), False

    async def state(*_: object) -> str:
        await is_free.wait()
        return STATE.format(admin=12 if is_drained else 4, sessions=3)

    async def ordered(*_: object) -> None:
        nonlocal is_drained
        is_drained = True

    monkeypatch.setattr(haproxy_socket, "ask", state)
    monkeypatch.setattr(haproxy_socket, "order", ordered)
    clock = SteppedClock(builders.NOW)
    writer = FrontWriter(clock, asyncio.create_task, ("vast",))
    front = Front("chat", "train", 8000, haproxy=Path("socket"), backend="chat")
    lease = builders.lease(ports="8000/tcp=192.0.2.1:4000")
    works = (builders.workload(ports=(8000,)),)
    writer.see((front,), (lease,), works, ())
    await asyncio.sleep(0)
    writer.see((front,), (lease,), works, (lease,))
    is_free.set()
    await writer.settle()
    assert writer.reports[lease.lease_id].asked_at is None
    assert not is_drained
    clock.advance(60)
    writer.see((front,), (lease,), works, (lease,))
    await writer.settle()
    assert (writer.reports[lease.lease_id].asked_at, is_drained) == (clock.now(), True)
