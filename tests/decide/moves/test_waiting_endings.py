"""Endings that wait, pass after pass: a market that is dark in one of them begins no wait anew."""

import datetime as dt
from dataclasses import replace

import msgspec

from agent.decide.moves.waiting_endings import WaitingEndings
from agent.domain.fleet import Fleet
from agent.domain.front_report import FrontReport
from agent.domain.record.lease import LeaseState
from tests.support import builders

LEASE = builders.lease()
ASKED = FrontReport(builders.NOW, is_drained=True, sessions=2, asked_at=builders.ago(seconds=10))


def fleet(*, is_listed: bool, report: FrontReport = ASKED) -> Fleet:
    work = builders.workload(drain=dt.timedelta(seconds=30))
    return builders.fleet(
        workloads=(work,),
        leases=(LEASE,),
        markets={"vast": builders.view(is_fresh=is_listed)},
        front_reports={LEASE.lease_id: report},
    )


def test_what_a_proxy_drains_stays_drained_while_its_market_is_dark() -> None:
    """Nobody knows whether its ending is still due. A new wait each time would let the lease bill without end."""
    assert WaitingEndings(fleet(is_listed=False)).leases == (LEASE,)


def test_an_ending_that_is_given_up_gives_the_requests_back() -> None:
    assert WaitingEndings(fleet(is_listed=True)).leases == ()


def test_nothing_else_is_drained_in_the_dark() -> None:
    assert WaitingEndings(fleet(is_listed=False, report=replace(ASKED, asked_at=None))).leases == ()
    stopped = msgspec.structs.replace(LEASE, state=LeaseState.PAUSED)
    assert WaitingEndings(msgspec.structs.replace(fleet(is_listed=False), leases=(stopped,))).leases == ()
