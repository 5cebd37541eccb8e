"""One spelling for every model."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.domain.market import gpu


@pytest.mark.parametrize(
    ("spellings", "model"),
    [
        (("RTX 4090", "rtx_4090", "RTX4090", "rtx-4090", "NVIDIA GeForce RTX 4090", " GeForce  RTX 4090 "), "RTX 4090"),
        (("RTX 3090 Ti", "RTX 3090Ti", "rtx_3090_ti", "NVIDIA RTX3090TI"), "RTX 3090 TI"),
        (("RTX 4070 SUPER", "RTX 4070S", "rtx_4070_super"), "RTX 4070S"),
        (("RTX 4070 Ti SUPER", "RTX 4070S Ti", "RTX 4070TI Super"), "RTX 4070S TI"),
        (("RTX 6000Ada", "RTX 6000 Ada", "NVIDIA RTX 6000 Ada Generation"), "RTX 6000 ADA"),
        (("Q RTX 8000", "Quadro RTX 8000", "NVIDIA Quadro RTX 8000"), "RTX 8000"),
        (("H100 SXM", "h100_sxm", "NVIDIA H100-SXM", "Tesla H100 SXM"), "H100 SXM"),
        (("Tesla T4", "T4", "t4"), "T4"),
        (("GTX 1080 Ti", "GTX1080Ti", "GeForce_GTX_1080_Ti"), "GTX 1080 TI"),
        (("RX7900XTX", "AMD Radeon RX 7900XTX"), "RX 7900XTX"),
        (("RTX A6000", "rtx_a6000"), "RTX A6000"),
        (("RTX PRO 6000 WS",), "RTX PRO 6000 WS"),
        (("GTX 1660 S", "GTX 1660S", "gtx_1660_super", "NVIDIA GeForce GTX 1660 SUPER"), "GTX 1660 S"),
        (("RTX 2060 S", "RTX 2060S", "RTX 2060 Super"), "RTX 2060S"),
        (("RTX 4070 S Ti", "RTX 4070 Ti S", "RTX 4070S Ti"), "RTX 4070S TI"),
        (("RTX PRO 6000 S",), "RTX PRO 6000 S"),
    ],
)
def test_spellings_of_one_model_are_one(spellings: tuple[str, ...], model: str) -> None:
    assert {gpu.model(spelling) for spelling in spellings} == {model}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("RTX 4090", "RTX 4090D"),
        ("RTX 3090", "RTX 3090 Ti"),
        ("H100 SXM", "H100 NVL"),
        ("RTX 4000Ada", "RTX A4000"),
        ("RTX 6000", "RTX 6000Ada"),
        ("RTX 4070S", "RTX 4070"),
        ("RTX 4080 laptop", "RTX 4080"),
        ("GTX 1660 S", "GTX 1660"),
        ("GTX 1660 S", "GTX 1660 Ti"),
        ("RTX PRO 6000 S", "RTX PRO 6000 WS"),
        ("RTX 6000 S", "RTX 6000"),
        ("L40 S", "L40"),
    ],
)
def test_different_models_stay_different(one: str, other: str) -> None:
    assert gpu.model(one) != gpu.model(other)


@given(st.text(string.ascii_letters + string.digits + " _-", max_size=30))
def test_a_canonical_name_is_its_own_canonical_name(text: str) -> None:
    once = gpu.model(text)
    assert gpu.model(once) == once
    assert gpu.model(text.lower()) == gpu.model(text.upper())
