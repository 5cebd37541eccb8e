"""Tables as files: their content is the ledger's content, and no text in them is a formula."""

import csv
import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from agent.domain.money import Usd
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.ledger.file import connection, parquet_file, table_export
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.store import Ledger
from agent.ledger.tables import schema
from tests.ledger.values import NOW, lease

pytestmark = pytest.mark.only_sqlite

EVIL = '=HYPERLINK("http://x";"y")'


@pytest.fixture
async def filled(ledger: Ledger) -> Ledger:
    async with ledger.transaction() as tx:
        tx.open_lease(lease())
        for number in range(25):
            text = EVIL if number == 0 else f"number {number}"
            kind = EventKind.LEASE_INTERRUPTED
            tx.append_event(Event(NOW, kind, workload="train", slot=number, evidence=text, amount=Usd(-1_234_567)))
    return ledger


async def written(ledger: Ledger, folder: Path, sink: type, *names: str) -> dict[str, int]:
    reader = await ledger.reader()
    made = await reader.export(names or table_export.TABLES, folder, sink.suffix, sink)  # type: ignore[attr-defined]
    return {one.table: one.rows for one in made}


def listed(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.csv"))


def counts(path: Path) -> dict[str, int]:
    with connection.engine(path, "ro").connect() as link:
        tables = schema.METADATA.tables
        return {
            name: link.execute(sa.select(sa.func.count()).select_from(tables[name])).scalar_one() for name in tables
        }


async def test_every_table_is_a_file_with_all_its_rows(
    filled: Ledger, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_export, "ROWS_AT_ONCE", 7)
    assert await written(filled, tmp_path, table_export.CsvSink) == counts(path)
    assert await written(filled, tmp_path, parquet_file.ParquetSink) == counts(path)
    for name, rows in counts(path).items():
        with (tmp_path / f"{name}.csv").open(newline="", encoding="utf-8") as file:
            head, *lines = csv.reader(file)
        columns = [column.name for column in schema.METADATA.tables[name].columns]
        assert head == columns
        assert len(lines) == rows
        read = pq.read_table(tmp_path / f"{name}.parquet")
        assert (read.num_rows, read.column_names) == (rows, columns)
    assert {file.stat().st_mode & 0o777 for file in listed(tmp_path)} == {0o600}


async def test_parquet_has_types_and_exact_money(filled: Ledger, tmp_path: Path) -> None:
    await written(filled, tmp_path, parquet_file.ParquetSink, "events", "leases")
    events = pq.read_table(tmp_path / "events.parquet").to_pylist()
    assert [row["slot"] for row in events] == list(range(25))
    assert (events[0]["at"], events[0]["amount"]) == (NOW, Decimal("-1.234567"))
    assert (events[0]["evidence"], events[0]["bid"]) == (EVIL, None)
    (row,) = pq.read_table(tmp_path / "leases.parquet").to_pylist()
    wanted = lease()
    assert row["gpu_rate"] == Decimal(wanted.gpu_rate.micros).scaleb(-6)
    assert (row["has_run"], row["opened_at"]) == (wanted.has_run, wanted.opened_at)
    assert (row["state"], row["dlperf"]) == (wanted.state.value, wanted.dlperf)


async def test_csv_has_the_same_as_text(filled: Ledger, tmp_path: Path) -> None:
    await written(filled, tmp_path, table_export.CsvSink, "events")
    text = (tmp_path / "events.csv").read_bytes().decode()
    with (tmp_path / "events.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["evidence"] == f"'{EVIL}"
    assert rows[0]["amount"] == "-1.234567"
    assert dt.datetime.fromisoformat(rows[0]["at"]) == NOW
    assert ",-1.234567," in text, "a number is not quoted"
    assert rows[1]["evidence"] == "number 1"


async def test_no_file_is_overwritten_and_none_is_left_half(filled: Ledger, tmp_path: Path) -> None:
    (tmp_path / "leases.csv").write_text("mine")
    with pytest.raises(LedgerError) as caught:
        await written(filled, tmp_path, table_export.CsvSink, "events", "leases")
    assert caught.value.code is Code.UNWRITABLE
    assert "leases.csv exists; name another folder" in str(caught.value)
    assert [file.name for file in listed(tmp_path)] == ["leases.csv"]
    assert (tmp_path / "leases.csv").read_text() == "mine"


async def test_it_is_of_one_instant_and_the_ledger_stays_as_it_was(filled: Ledger, path: Path, tmp_path: Path) -> None:
    class Late(table_export.CsvSink):
        """Finds the ledger written while it is exported."""

        def close(self) -> None:
            """Write an event as a daemon would, on a connection of its own."""
            super().close()
            with connection.engine(path, "rw").begin() as link:
                link.execute(sa.text("UPDATE meta SET value = value"))
                link.execute(sa.text("DELETE FROM events WHERE slot = 24"))

    found = await written(filled, tmp_path, Late, "leases", "events")
    assert found == {"leases": 1, "events": 25}
    assert counts(path)["events"] == 24


@given(st.text())
def test_no_text_is_a_formula_and_each_is_read_back(text: str) -> None:
    (line,) = csv.reader([f"1,{table_export.cell(text)},2"]) if not set(text) & {"\r", "\n"} else [None]
    made = table_export.cell(text)
    inner = made[1:-1].replace('""', '"')
    assert made[0] == made[-1] == '"'
    assert not inner.lstrip().startswith(table_export.FORMULA)
    assert inner[:1] not in {"\t", "\r", "\n"}
    assert inner.removeprefix("'") == text
    if line is not None:
        assert line == ["1", inner, "2"]


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "\uff1d1", "'=1", "'", "\n-1", "\u00a0=1"]
)
def test_what_begins_a_formula_gets_an_apostrophe(text: str) -> None:
    assert table_export.cell(text).startswith("\"'")


@pytest.mark.parametrize(
    ("value", "written"),
    [(None, ""), ("", '""'), (True, "true"), (-3, "-3"), (Decimal("-0.000001"), "-0.000001"), (b"\x01\xff", '"0x01ff"'),
     (Decimal(1).scaleb(-6), "0.000001")],
)  # fmt: skip
def test_cells(value: object, written: str) -> None:
    assert table_export.cell(value) == written
