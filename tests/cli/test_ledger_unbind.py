"""`gpubid ledger unbind`: a market's account may be replaced, but no denial by the new one ends a lease of the old."""

from pathlib import Path
from typing import Any

import pytest

from agent.clock import SystemClock
from agent.domain.record.lease import Bills
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.store import Ledger
from tests.support import builders
from tests.support.configs import GOOD
from tests.support.programs import gpubid

PROVEN = {"proven_at": builders.NOW, "bills": Bills.GPU_AND_DISK}
CONFIG = GOOD + "[ledger]\npath = 'ledger.sqlite'\n"


async def bound(folder: Path, *markets: str, **terms: Any) -> None:
    """Write a ledger that is bound to accounts, with an open lease at each of `markets`."""
    (folder / "agent.toml").write_text(CONFIG)
    ledger = await Ledger.open(folder / "ledger.sqlite", clock=SystemClock())
    async with ledger.transaction() as tx:
        for market in ("vast", "dstack"):
            tx.bind_account(market, "7")
        for number, market in enumerate(markets):
            tx.open_lease(builders.lease(number + 1, market=market, lease_id=f"{market}-{number}", **PROVEN | terms))
    await ledger.close()


async def take(folder: Path, market: str, account_id: str) -> None:
    """Bind the ledger as a start with the key of an account does."""
    ledger = await Ledger.open(folder / "ledger.sqlite", clock=SystemClock())
    try:
        async with ledger.transaction() as tx:
            tx.bind_account(market, account_id)
    finally:
        await ledger.close()


async def test_the_next_start_takes_the_account_of_the_key(tmp_path: Path) -> None:
    await bound(tmp_path)
    with pytest.raises(LedgerError, match="if the account was replaced, `gpubid ledger unbind vast`") as refused:
        await take(tmp_path, "vast", "8")
    assert refused.value.code is Code.WRONG_ACCOUNT
    ran = await gpubid(tmp_path, "ledger", "unbind", "vast")
    assert (ran.code, "belonged to account 7 of vast" in ran.out) == (0, True), ran
    again = await gpubid(tmp_path, "ledger", "unbind", "vast")
    assert (again.code, "bound to no account of vast" in again.err) == (2, True), again
    await take(tmp_path, "vast", "8")
    with pytest.raises(LedgerError):
        await take(tmp_path, "dstack", "8")
    told = await gpubid(tmp_path, "ledger", "events", "--kind", "operator.ordered")
    assert "the account 7 of vast was forgotten" in told.out.replace("\n", " ")


async def test_an_account_whose_denial_would_end_an_open_lease_is_kept(tmp_path: Path) -> None:
    await bound(tmp_path, "vast", "dstack")
    ran = await gpubid(tmp_path, "ledger", "unbind", "vast")
    assert (ran.code, "vast may still bill for vast-0" in ran.err) == (1, True), ran
    with pytest.raises(LedgerError):
        await take(tmp_path, "vast", "8")
    ran = await gpubid(tmp_path, "ledger", "unbind", "dstack")
    assert ran.code == 0, ran
    await take(tmp_path, "dstack", "8")


@pytest.mark.parametrize("terms", [{"proven_at": None}, {"bills": Bills.DISK}], ids=["a reply", "no machine yet"])
async def test_what_only_a_reply_named_or_has_no_machine_is_not_forgotten(
    tmp_path: Path, terms: dict[str, Any]
) -> None:
    await bound(tmp_path, "dstack", **terms)
    ran = await gpubid(tmp_path, "ledger", "unbind", "dstack")
    assert (ran.code, "dstack may still bill for dstack-0" in ran.err) == (1, True), ran


async def test_without_a_ledger_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(CONFIG)
    ran = await gpubid(tmp_path, "ledger", "unbind", "vast")
    assert (ran.code, "there is no ledger" in ran.err) == (1, True), ran
    assert not (tmp_path / "ledger.sqlite").exists()
