"""An export of a ledger describes the market and names nobody, and becomes traces."""

import asyncio
import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from agent.cli.main import app
from agent.domain.market.price import PriceSample
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.lab.traces import ledger_export, ledger_history, trace_files
from agent.ledger.tables.search_history import Seen
from tests.support import builders
from tests.support.scene import work
from tests.support.world import rehearsed

RUN = CliRunner().invoke
PRIVATE = "acme-secret"


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, set[str]]]:
    """Give a ledger of an hour with a loss in it, and every name that may not leave it."""
    return asyncio.run(_lived(tmp_path_factory.mktemp("lived")))


async def _lived(tmp_path: Path) -> tuple[Path, dict[str, set[str]]]:
    named = replace(work(PRIVATE), image=f"{PRIVATE}/image:1", environment=(("TOKEN", PRIVATE),))
    async with rehearsed(tmp_path, workloads=(named,)) as world:
        held = await world.until_running()
        await world.cycle(minutes=15)
        world.rival(int(held.host_id), bid=held.gpu_rate.dollars * 3)
        await world.cycle(minutes=30)
        past = await world.past_leases()
        reader = await world.app.ledger.reader()
        seen = await reader.slices()
        names = {
            "hosts": {lease.host_id for lease in past} | {each.host_id for each in seen},
            "owners": {lease.owner_id for lease in past} | {each.owner_id for each in seen},
            "other": {
                *(lease.instance_id for lease in past), *(lease.intent_id for lease in past),
                world.app.ledger.fleet_id, *(await reader.meta()).values(), PRIVATE,
            },
        }  # fmt: skip
        return world.config.ledger, names


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def texts(value: Any) -> set[str]:
    """Return every text and number of a document, as text."""
    if isinstance(value, dict):
        return set().union(*(texts(each) for each in value.values()))
    if isinstance(value, list):
        return set().union(*(texts(each) for each in value), set())
    return {str(value)}


def test_plain_keeps_hosts_and_nothing_else(lived: tuple[Path, dict[str, set[str]]]) -> None:
    ledger, names = lived
    ledger.with_name(ledger.name + ".export-salt").unlink(missing_ok=True)
    told = RUN(app, ["lab", "record", str(ledger), "--plain"])
    everything = texts(rows(told.stdout))
    assert names["hosts"] <= everything
    assert not {each for each in names["other"] if each} & everything
    assert not ledger.with_name(ledger.name + ".export-salt").exists()


def test_an_export_names_nobody_and_tells_what_happened(lived: tuple[Path, dict[str, set[str]]]) -> None:
    ledger, names = lived
    told = RUN(app, ["lab", "record", str(ledger)])
    assert told.exit_code == 0, told.stderr
    found = rows(told.stdout)
    everything = texts(found)
    for kind, private in names.items():
        assert not {each for each in private if each} & everything, kind
    assert PRIVATE not in told.stdout
    salt = ledger.with_name(ledger.name + ".export-salt").read_text().strip()
    assert salt not in told.stdout
    kinds = {row["kind"] for row in found}
    assert kinds == {ledger_export.KIND, "slice", "price", "look", "lease", "event"}
    lost = [row for row in found if row.get("what") == "lease.interrupted"]
    assert [row["cause"] for row in lost] == ["outbid"]
    shown = {row["host"] for row in found if row["kind"] in {"price", "slice", "lease"}}
    assert {host for row in found if row["kind"] == "look" for host, _ in row["slices"]} <= shown, "one host, one name"
    assert RUN(app, ["lab", "record", str(ledger)]).stdout == told.stdout, "the next export names hosts alike"


def test_an_export_becomes_traces_that_the_bench_reads(lived: tuple[Path, dict[str, set[str]]], tmp_path: Path) -> None:
    ledger, _ = lived
    out = tmp_path / "history.jsonl"
    assert RUN(app, ["lab", "record", str(ledger), "--out", str(out)]).exit_code == 0
    assert RUN(app, ["lab", "record", str(ledger), "--out", str(out)]).exit_code == 2, "nothing is overwritten"
    done = RUN(app, ["lab", "import", "ledger", str(out), "--out", str(tmp_path / "traces")])
    assert done.exit_code == 0, done.stderr
    found = trace_files.folder(tmp_path / "traces")
    first = next(row for row in rows(out.read_text()) if row["kind"] == "look")
    assert {trace.gpu for trace in found} <= {"RTX 4090", "RTX 3090"}
    assert sum(int(trace.available[0]) for trace in found) == len(first["slices"])
    assert all(0 < trace.spot_prices[0] < 1 for trace in found if trace.available[0])
    broken = tmp_path / "broken.jsonl"
    broken.write_text(out.read_text().replace('"host":', '"h":'))
    bad = RUN(app, ["lab", "import", "ledger", str(broken), "--out", str(tmp_path / "more")])
    assert (bad.exit_code, ": host: is missing; record it anew" in bad.stderr) == (2, True)
    broken.write_text(out.read_text().replace('"slices":', '"slices":[1,2],"s":'))
    bad = RUN(app, ["lab", "import", "ledger", str(broken), "--out", str(tmp_path / "more")])
    assert (bad.exit_code, ": slices: are no pairs" in bad.stderr) == (2, True)


def test_a_span_holds_nothing_from_before_it_but_the_prices_that_still_held() -> None:
    def at(hours: float) -> datetime:
        return builders.NOW + timedelta(hours=hours)

    known = ledger_history.History(
        looks=[Seen("vast", at(5), (("1", 1),)), Seen("vast", at(6), (("1", 1),))],
        prices={
            ("vast", host, 1): [PriceSample(at(hour), "vast", host, builders.RTX_4090, 1, None, None) for hour in hours]
            for host, hours in (("1", (1, 2, 5.5)), ("2", (1, 2, 5.5)), ("3", (1,)))
        },
        slices={("vast", f"{number}", 1): builders.offer(number) for number in (1, 2, 3)},
        leases=[
            msgspec.structs.replace(
                builders.lease(number), opened_at=at(opened), ended_at=None if ended is None else at(ended)
            )
            for number, opened, ended in ((1, 0, 3), (2, 1, 5), (3, 5, 9), (4, 8, None))
        ],
        events={"vast-2": [Event(at(hours), EventKind.LEASE_RUNNING, lease_id="vast-2") for hours in (1, 5)]},
    )
    cut = ledger_export.of_span(known, at(4), at(7))
    assert [(key[1], [row.at for row in rows]) for key, rows in cut.prices.items()] == [
        ("1", [at(2), at(5.5)]),
        ("2", [at(5.5)]),
    ]
    assert [key[1] for key in cut.slices] == ["1", "2"]
    assert [(each.lease_id, each.ended_at) for each in cut.leases] == [("vast-2", at(5)), ("vast-3", None)]
    assert [event.at for event in cut.events["vast-2"]] == [at(5)]
    assert ledger_export.of_span(known, None, None) is known


def test_a_host_has_another_name_under_another_salt() -> None:
    one, other = ledger_export.Names(b"1" * 32), ledger_export.Names(b"2" * 32)
    assert one.of("host", "vast", "17") != other.of("host", "vast", "17")
    assert one.of("host", "vast", "17") != one.of("owner", "vast", "17") != "17"
    assert one.of("host", "runpod", "pool/secure/x").startswith("pool/")
