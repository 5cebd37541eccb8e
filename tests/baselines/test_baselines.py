"""Figures of other clouds: each with date and source, found in any spelling, and every way their file can be broken."""

from pathlib import Path

import pytest

from agent.baselines import baseline_loading, catalogue
from agent.config import ConfigError
from agent.domain import money
from agent.domain.market.tenure import Tenure

SHIPPED = baseline_loading.load()
GOOD = """\
figures = [{ cloud = "aws", gpu = "L4", published_as = "L4", per_hour = 1.00, dated = "2025-04", source = "one" }]
[sources.one]
title = "a published list of prices"
"""
# (the mistake, the replaced text, its replacement, key, code)
BROKEN = [
    ("no date", 'dated = "2025-04", ', "", "figures[0].dated", "missing_key"),
    ("no source", ', source = "one"', "", "figures[0].source", "missing_key"),
    ("no day", '"2025-04"', '"April 2025"', "figures[0].dated", "bad_date"),
    ("no such month", '"2025-04"', '"2025-13"', "figures[0].dated", "bad_date"),
    ("unknown source", '"one" }', '"two" }', "figures[0].source", "unknown_source"),
    ("a source without words", "a published list of prices", "", "sources.one.title", "empty"),
    ("free", "1.00", "0", "figures[0].per_hour", "out_of_range"),
    ("a range the wrong way", "1.00", "1.00, per_hour_most = 0.50", "figures[0]", "out_of_range"),
    ("unknown key", "1.00", "1.00, price = 2", "figures[0].price", "unknown_key"),
    ("no such tenure", "1.00", '1.00, tenure = "rented"', "figures[0].tenure", "unknown_value"),
    ("a term without a reservation", "1.00", "1.00, term_days = 365", "figures[0]", "conflict"),
    ("no term", "1.00", '1.00, tenure = "reserved", term_days = 0', "figures[0].term_days", "out_of_range"),
]


def test_every_shipped_figure_has_its_date_and_source_and_cites_both() -> None:
    assert len(SHIPPED.figures) > 50
    for figure in SHIPPED.figures:
        assert figure.dated[:4].isdecimal()
        assert len(figure.source) > 10
        assert figure.dated in figure.cited
        assert figure.source in figure.cited
        assert figure.quote(8).cited == figure.cited


@pytest.mark.parametrize(
    ("cloud", "model", "dollars"),
    [
        ("aws", "H100 SXM", 12.30),
        ("gcp", "H100 PCIe", 3.67),
        ("aws", "A100 80GB SXM", 3.44),
        ("runpod", "NVIDIA A100 80GB PCIe", 1.19),
        ("lambda", "NVIDIA A100-SXM4-80GB", 1.79),
        ("together", "NVIDIA H100 80GB HBM3", 1.75),
        ("tensordock", "rtx_4090", 0.37),
        ("fly", "L40S", 1.25),
    ],
)
def test_a_figure_is_found_in_any_spelling(cloud: str, model: str, dollars: float) -> None:
    assert SHIPPED.cheapest(cloud, model).least == money.per_hour(dollars)


def test_a_family_means_every_form_and_a_figure_of_a_family_fits_each() -> None:
    assert {figure.gpu for figure in SHIPPED.find("A100")} == {"A100", "A100 SXM4", "A100 PCIE"}
    assert {figure.gpu for figure in SHIPPED.find("A100 SXM4")} == {"A100", "A100 SXM4"}
    spot = SHIPPED.cheapest("aws", "H100 SXM", Tenure.INTERRUPTIBLE)
    assert (spot.least, spot.most) == (money.per_hour(2.5), money.per_hour(2.75))
    assert "form factor not published" in spot.cited


def test_the_cheapest_comes_first_so_that_a_comparison_flatters_least() -> None:
    rates = [figure.least.micros / figure.gpus for figure in SHIPPED.find("A100", tenure=Tenure.ON_DEMAND)]
    assert rates == sorted(rates)


def test_a_reserved_price_is_no_on_demand_price(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text(GOOD.replace("1.00", '1.00, tenure = "reserved", term_days = 30'))
    own = baseline_loading.load(tmp_path / "b.toml")
    with pytest.raises(catalogue.UnknownBaseline, match="at aws only its reserved price is"):
        own.cheapest("aws", "L4")
    reserved = own.cheapest("aws", "L4", Tenure.RESERVED)
    assert (reserved.least, reserved.term_days) == (money.per_hour(1), 30)


# One table of 2025; the term of a reservation is not in it.
@pytest.mark.parametrize(
    ("cloud", "model", "tenure", "dollars"),
    [
        ("runpod", "H100", Tenure.INTERRUPTIBLE, 2.79),
        ("gcp", "H100", Tenure.INTERRUPTIBLE, 2.25),
        ("gcp", "A100", Tenure.INTERRUPTIBLE, 1.57),
        ("aws", "A100 80GB SXM", Tenure.INTERRUPTIBLE, 1.72),
        ("coreweave", "H100", Tenure.RESERVED, 2.23),
        ("cudo", "A100", Tenure.RESERVED, 1.25),
        ("thundercompute", "A100 40GB", Tenure.ON_DEMAND, 0.57),
        ("thundercompute", "NVIDIA T4", Tenure.ON_DEMAND, 0.27),
        ("leaseweb", "L40S", Tenure.ON_DEMAND, 0.82),
    ],
)
def test_the_unchecked_table_of_2025_says_that_nobody_checked_it(
    cloud: str, model: str, tenure: Tenure, dollars: float
) -> None:
    of_table = [one for one in SHIPPED.find(model, cloud, tenure) if one.source == "2025 comparison table, not checked"]
    assert [(one.least, one.dated, one.term_days) for one in of_table] == [(money.per_hour(dollars), "2025", None)]


def test_whole_nodes_are_billed_where_only_those_are_sold() -> None:
    node = next(figure for figure in SHIPPED.find("A100", "aws") if figure.sold_in == 8)
    assert (node.quote(8).least, node.quote(8).billed_gpus) == (money.per_hour(32.8), 8)
    assert (node.quote(3).least, node.quote(3).billed_gpus) == (money.per_hour(32.8), 8)
    assert node.quote(16).least == money.per_hour(65.6)
    assert SHIPPED.cheapest("coreweave", "H100 SXM").quote(8).least == money.per_hour(49.2)
    with pytest.raises(ValueError, match="no price"):
        node.quote(0)


def test_what_is_not_known_is_said_with_what_is() -> None:
    with pytest.raises(catalogue.UnknownBaseline, match="did you mean aws") as caught:
        SHIPPED.cheapest("awss", "L4")
    assert caught.value.code == "unknown_cloud"
    with pytest.raises(catalogue.UnknownBaseline, match="it is known at aws") as caught:
        SHIPPED.cheapest("gcp", "L4")
    assert caught.value.code == "no_figure"
    with pytest.raises(catalogue.UnknownBaseline, match="nor is it at any other"):
        SHIPPED.cheapest("gcp", "RTX 9999")


def test_a_good_file_of_ones_own_is_read(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text(GOOD)
    assert [figure.name for figure in baseline_loading.load(tmp_path / "b.toml").figures] == ["aws"]


@pytest.mark.parametrize(("old", "new", "key", "code"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_mistake_is_named_with_its_place(tmp_path: Path, old: str, new: str, key: str, code: str) -> None:
    file = tmp_path / "b.toml"
    file.write_text(GOOD.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        baseline_loading.load(file)
    assert [(found.key, found.code) for found in caught.value.problems] == [(key, code)]
    assert all(found.file == str(file) and ";" in found.sentence for found in caught.value.problems)
