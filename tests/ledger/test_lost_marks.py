"""After a restore of the server's database the handbook's statements make the ledger one whose spend is unknown."""

import datetime as dt
import re
from pathlib import Path

import pytest

from agent.clock import SteppedClock
from agent.domain.market.tenure import Tenure
from agent.ledger import storage
from agent.ledger.server_address import ServerAddress
from agent.ledger.store import Ledger
from agent.ledger.tables.spend_rows import MONTH_SEED, SpendEntry, SpendKey
from tests.ledger.values import lease
from tests.support import builders, engines, postgres
from tests.support.standby_names import administered

pytestmark = pytest.mark.skipif(not postgres.is_here(), reason="PostgreSQL is not installed (make tools)")
PAGE = Path(__file__).parents[2] / "deploy/handbook/pages/ledger-server.md"


def statements(schema: str) -> str:
    """Return the statements that the handbook prints, for a schema."""
    _, _, part = PAGE.read_text().partition("## Restore it\n")
    found = re.search(r"```sql\n(.*?)```", part, re.DOTALL)
    assert found is not None
    return found[1].replace("search_path TO gpubid;", f"search_path TO {schema};")


async def test_the_handbooks_statements_make_earlier_spend_unknown(
    database: str, path: Path, clock: SteppedClock
) -> None:
    address = ServerAddress(database, engines.schema(path))
    today = dt.datetime.now(dt.UTC).date()
    months = today.replace(day=1) - dt.timedelta(days=1), today
    ledger = await Ledger.open(storage.of(path, address), clock=clock)
    async with ledger.transaction() as tx:
        tx.open_lease(lease())
        tx.count_again("vast")
        for day, dollars in zip(months, (2, 3), strict=True):
            tx.add_spend(SpendEntry(MONTH_SEED, "", "vast", Tenure.INTERRUPTIBLE, day, gpu=builders.usd(dollars)))
            tx.add_spend(SpendEntry("l1", "train", "vast", Tenure.INTERRUPTIBLE, day, gpu=builders.usd(1)))
    assert not ledger.is_uncounted("vast")
    await ledger.close()

    with administered(address) as raw:
        raw.execute(f"SET ROLE {engines.ROLE}")
        raw.execute(statements(address.schema))
    ledger = await Ledger.open(storage.of(path, address), clock=clock)
    assert (ledger.was_lost, ledger.has_lost_runs, ledger.is_uncounted("vast")) == (True, True, True)
    spend = {line.key: line.amount for line in await (await ledger.reader()).spend_by(SpendKey.LEASE)}
    assert spend == {MONTH_SEED: builders.usd(2), "l1": builders.usd(2)}, "this month is counted again from the bill"
    await ledger.close()
