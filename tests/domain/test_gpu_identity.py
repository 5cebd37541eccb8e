"""Two names of one card, as markets and drivers write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.domain.market import gpu, gpu_identity
from agent.domain.market.card_memory import GIGABYTES

SAME = [
    ("H100 SXM", "NVIDIA H100 80GB HBM3"),
    ("A100 SXM4", "NVIDIA A100-SXM4-80GB"),
    ("A100 PCIE", "NVIDIA A100 80GB PCIe"),
    ("Tesla V100", "Tesla V100-SXM2-16GB"),
    ("RTX 4090", "NVIDIA GeForce RTX 4090"),
    ("RTX 4090D", "NVIDIA GeForce RTX 4090 D"),
    ("RTX 4070S TI", "NVIDIA GeForce RTX 4070 Ti SUPER"),
    ("GTX 1660 S", "NVIDIA GeForce GTX 1660 SUPER"),
    ("GTX 1650 S", "NVIDIA GeForce GTX 1650 SUPER"),
    ("RTX PRO 6000 S", "NVIDIA RTX PRO 6000 Blackwell Server Edition"),
    ("RTX 6000Ada", "NVIDIA RTX 6000 Ada Generation"),
    ("RTX PRO 6000 WS", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"),
    ("Q RTX 8000", "Quadro RTX 8000"),
    ("GH200", "NVIDIA GH200 480GB"),
    ("TITAN V", "NVIDIA TITAN V"),
    ("RTX 4090", "Graphics Device"),
]
OTHER = [
    ("RTX 4090", "NVIDIA GeForce RTX 3090"),
    ("RTX 3090 TI", "NVIDIA GeForce RTX 3090"),
    ("RTX 4080S", "NVIDIA GeForce RTX 4080"),
    ("GTX 1660 S", "NVIDIA GeForce GTX 1660"),
    ("RTX A6000", "NVIDIA RTX 6000 Ada Generation"),
    ("RTX 6000ADA", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"),
    ("L40S", "NVIDIA L40"),
    ("A100 SXM4", "NVIDIA A100 80GB PCIe"),
    ("H100 SXM", "NVIDIA A100-SXM4-80GB"),
]


@pytest.mark.parametrize(("market", "driver"), SAME)
def test_one_card_under_two_names_is_one_card(market: str, driver: str) -> None:
    assert gpu_identity.may_be_same(market, driver)
    assert gpu_identity.may_be_same(driver, market)


@pytest.mark.parametrize(("market", "driver"), OTHER)
def test_another_card_is_another_card(market: str, driver: str) -> None:
    assert not gpu_identity.may_be_same(market, driver)
    assert not gpu_identity.may_be_same(driver, market)


SERIES = st.sampled_from(["GTX 16", "RTX 20", "RTX 40", "RTX 50", "RTX PRO 40", "RTX A4", "L4", "A1"])
ENDS = st.sampled_from(["", " S", "S", " SUPER", " Ti", " Ti S", "S Ti", " Ti SUPER", " D", " laptop"])


@given(SERIES, st.sampled_from(["00", "50", "60", "70", "80"]), ENDS, ENDS)
def test_two_spellings_of_one_name_are_never_two_cards(series: str, number: str, one: str, other: str) -> None:
    """The `gpu` filter goes by the name, and the check of a host by the identity."""
    first, second = f"{series}{number}{one}", f"{series}{number}{other}"
    assert gpu.model(first) != gpu.model(second) or gpu_identity.may_be_same(first, second)


@given(st.sampled_from(sorted(GIGABYTES)), st.text(max_size=64))
def test_any_name_is_read_and_every_card_is_itself(name: str, told: str) -> None:
    assert gpu_identity.may_be_same(name, f"NVIDIA {name}")
    assert gpu_identity.may_be_same(name, told) is gpu_identity.may_be_same(told, name)
