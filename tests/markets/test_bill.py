from datetime import UTC, datetime

import pytest

from agent.domain import money
from agent.markets import market_errors
from agent.markets.port import Charge
from agent.markets.vast import bill
from tests.markets.wire import PAYLOADS

DAY = datetime(2026, 11, 5, tzinfo=UTC)


def test_lines_of_instances_become_charges_by_utc_day() -> None:
    page = bill.page((PAYLOADS / "charges.json").read_bytes())
    charges = [bill.charge(line, DAY) for line in page.results]
    assert charges == [
        # The items are exact, the line is rounded to a tenth of a cent.
        Charge("52000001", money.usd("0.12295"), DAY),
        # Began the day before, counts from the day asked for.
        Charge("52000002", money.usd("0.5"), DAY),
        None,
    ]


@pytest.mark.parametrize(
    "line",
    [
        b'{"amount":1e300,"start":1793836800,"source":"instance-1"}',
        b'{"amount":"nan","start":1793836800,"source":"instance-1"}',
        b'{"amount":1,"start":-5,"source":"instance-1"}',
        b'{"amount":1,"start":"inf","source":"instance-1"}',
    ],
)
def test_a_line_that_cannot_be_refuses_the_bill(line: bytes) -> None:
    page = bill.page(b'{"results":[' + line + b"]}")
    with pytest.raises(market_errors.Malformed):
        bill.charge(page.results[0], DAY)


@pytest.mark.parametrize("body", [b"", b"{}", b'{"success":false,"results":[]}', b'{"results":[{}]}'])
def test_what_is_no_bill_is_malformed(body: bytes) -> None:
    with pytest.raises(market_errors.Malformed):
        bill.page(body)


def test_the_holder_of_a_key() -> None:
    assert bill.holder(b'{"id":77,"credit":12.5,"email":"x"}') == ("77", money.usd("12.5"))
    assert bill.holder(b'{"id":"77","credit":"-1.504"}') == ("77", money.usd("-1.504"))
    assert bill.holder(b'{"id":77,"credit":null}') == ("77", None)


@pytest.mark.parametrize("credit", ['"nan"', "NaN", "Infinity", "1e99", '"much"', "[]"])
def test_credit_that_cannot_be_is_unknown_and_the_account_is_still_known(credit: str) -> None:
    assert bill.holder(f'{{"id":5,"credit":{credit}}}'.encode()) == ("5", None)


@pytest.mark.parametrize("body", [b"", b"{}", b'{"credit":5}', b'{"id":null}'])
def test_an_account_that_names_nobody_is_malformed(body: bytes) -> None:
    with pytest.raises(market_errors.Malformed):
        bill.holder(body)
