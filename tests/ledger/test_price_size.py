"""A year of prices at the quota stays under half a gigabyte."""

import pytest

from tests.ledger import price_size

pytestmark = pytest.mark.only_sqlite


@pytest.mark.nightly
def test_a_year_at_the_quota_stays_under_500_megabytes() -> None:
    year, _ = price_size.measure(days=17, rows=2_000)
    print(f"raw {year.raw}, hours {year.hours}: a year takes {year.megabytes:.0f} MB at most")
    assert (year.raw.rows, year.hours.rows) == (28_000, 6_000)
    assert year.megabytes < 500
