"""Every value comes back from SQLite as it went in."""

import dataclasses
import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given

from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HostRecord
from agent.domain.market.market_notice import NoticeGiven
from agent.domain.market.price import PriceSample
from agent.domain.money import Usd
from agent.domain.record.event import Event
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.record.guard_run import GuardRun
from agent.domain.record.host_check import HostCheck
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Lease
from agent.domain.slot import Slot
from agent.domain.work.sign_of_life import KeptSign
from agent.ledger.file import connection, migrate
from agent.ledger.tables import (
    decisions,
    event_rows,
    expiring_rows,
    guard_rows,
    host_rows,
    intent_rows,
    lease_rows,
    price_history,
    schema,
    spend_rows,
)
from agent.ledger.tables.decisions import RecordedDecision
from agent.ledger.tables.spend_rows import SpendEntry
from tests.ledger import values
from tests.support import engines


@pytest.fixture(scope="module", params=engines.PLAYED)
def link(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[sa.Connection]:
    path: Path = tmp_path_factory.mktemp("round") / "ledger.sqlite"
    if request.param == "postgresql":
        with engines.plain_connection(request.getfixturevalue("database")) as opened:
            yield opened
        return
    migrate.prepare(path)
    engine = connection.engine(path, "rw")
    with engine.connect() as opened:
        yield opened
    engine.dispose()


def stored(link: sa.Connection, statement: sa.Executable, row: dict[str, object], table: sa.Table) -> dict[str, Any]:
    with link.begin() as tx:
        link.execute(statement, [row])
        back: dict[str, Any] = dict(link.execute(sa.select(table)).mappings().one())
        tx.rollback()
    return back


@given(values.leases())
def test_leases(link: sa.Connection, lease: Lease) -> None:
    assert lease_rows.lease_of(stored(link, lease_rows.OPENED, lease_rows.row(lease), schema.leases)) == lease


@given(values.intents())
def test_intents(link: sa.Connection, intent: Intent) -> None:
    assert intent_rows.intent_of(stored(link, intent_rows.RECORDED, intent_rows.row(intent), schema.intents)) == intent


@given(values.events())
def test_events(link: sa.Connection, event: Event) -> None:
    back = event_rows.event_of(stored(link, event_rows.APPENDED, event_rows.row(event), schema.events))
    assert back.event_id is not None
    assert dataclasses.replace(back, event_id=None) == event


@given(values.decisions)
def test_decisions(link: sa.Connection, made: RecordedDecision) -> None:
    assert decisions.decision_of(stored(link, decisions.MADE, decisions.row(made), schema.decisions)) == made


@given(values.hosts)
def test_hosts(link: sa.Connection, host: HostRecord) -> None:
    assert host_rows.host_of(stored(link, host_rows.HOST_STORED, host_rows.host_row(host), schema.hosts)) == host


@given(values.cooldowns | values.holds | values.tallies | values.told)
def test_rests(link: sa.Connection, rest: ExpiringRecord) -> None:
    back = stored(link, expiring_rows.STORED, expiring_rows.row(rest), schema.cooldowns)
    assert expiring_rows.record_of(back) == rest


@given(values.slots, values.counts, values.ids, values.texts, values.times)
def test_runs(link: sa.Connection, place: Slot, number: int, name: str, digest: str, at: dt.datetime) -> None:
    run = GuardRun(place, number, name, digest, at)
    assert guard_rows.run_of(stored(link, guard_rows.BEGUN, guard_rows.row(run), schema.guard_runs)) == run


@given(values.slots, values.ids, values.texts, values.times)
def test_guard_figures(link: sa.Connection, place: Slot, lease: str, name: str, at: dt.datetime) -> None:
    for told in (
        GuardFigures(lease, place, "vast", "h1", 1, 1, at),
        GuardFigures(lease, place, "vast", "h1", 2, 3, at, -0.5, name, at, 2**53, 1.5, 0.0, 2.5),
    ):
        row = guard_rows.figures_row(told)
        assert guard_rows.figures_of(stored(link, guard_rows.MEASURED, row, schema.guard_figures)) == told


@given(values.ids, values.texts, values.times)
def test_host_checks(link: sa.Connection, lease: str, owner: str, at: dt.datetime) -> None:
    model = GpuModel("RTX 4090")
    plain = HostCheck(lease, "vast", "h1", owner, model, 2, 160.0, at)
    full = HostCheck(lease, "vast", "h1", owner, model, 1, 0.0, at, 150.5, 24.0, 22.0, 900.0, 0.75, 1, owner)
    links: dict[str, Any] = {"pcie_generation": 4, "pcie_width": 8, "pcie_share": 0.5, "clock_events": 4}
    for told in (plain, dataclasses.replace(full, **links, defect=owner, script="d1")):
        row = dataclasses.asdict(told)
        assert guard_rows.check_of(stored(link, guard_rows.CHECKED, row, schema.host_checks)) == told


@given(values.texts, values.ids, values.times, values.times)
def test_signs_of_life(link: sa.Connection, prefix: str, folder: str, due: dt.datetime, until: dt.datetime) -> None:
    for sign in (
        KeptSign("https://s3", "runs", prefix, folder, due),
        KeptSign("https://s3", "runs", prefix, folder, due, until, due),
    ):
        row = dataclasses.asdict(sign)
        assert guard_rows.sign_of(stored(link, guard_rows.SIGNED, row, schema.signs_of_life)) == sign


@given(values.ids, values.times, values.times)
def test_notices(link: sa.Connection, lease: str, lost: dt.datetime, told: dt.datetime) -> None:
    given_ = NoticeGiven(lease, lost, "vast", sigterm_seen=True, seconds=9.5, told_at=told)
    assert (
        guard_rows.notice_of(stored(link, guard_rows.NOTICED, dataclasses.asdict(given_), schema.guard_notices))
        == given_
    )


@given(values.samples)
def test_prices(link: sa.Connection, sample: PriceSample) -> None:
    assert (
        price_history.sample_of(stored(link, price_history.OBSERVED, price_history.row(sample), schema.prices))
        == sample
    )


@given(values.ids, values.times, values.amounts, values.reals)
def test_spend(link: sa.Connection, lease_id: str, at: dt.datetime, amount: Usd, seconds: float) -> None:
    lease = values.lease()
    entry = SpendEntry(
        lease_id,
        "train",
        "vast",
        lease.tenure,
        at.date(),
        amount,
        amount,
        amount,
        seconds,
        seconds,
    )
    back = stored(link, spend_rows.ADDED, spend_rows.row(entry), schema.spend)
    assert SpendEntry(**back) == entry


def test_every_field_of_a_lease_and_of_an_intent_has_its_column() -> None:
    of_intent = [field.name for field in dataclasses.fields(Intent)]
    for table, names in ((schema.leases, Lease.__struct_fields__), (schema.intents, of_intent)):
        assert {column.name for column in table.columns} == {*names, "workload"}
