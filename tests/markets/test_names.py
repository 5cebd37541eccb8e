import pytest

from agent.domain.market import gpu
from agent.markets.vast.names import GpuNames


@pytest.mark.parametrize(
    ("written", "vendor"),
    [
        ("rtx_3090_ti", "RTX 3090 Ti"),
        ("NVIDIA GeForce RTX 3090Ti", "RTX 3090 Ti"),
        ("V100", "Tesla V100"),
        ("rtx_4090", "RTX 4090"),
        ("RTX 6000Ada", "RTX 6000Ada"),
        ("rtx pro 6000 max-q", "RTX PRO 6000 Max-Q"),
        ("RTX 4070 laptop", "RTX 4070 laptop"),
    ],
)
def test_a_model_is_asked_for_in_the_vendors_spelling(written: str, vendor: str) -> None:
    spellings = GpuNames().spellings([gpu.model(written)])
    assert vendor in spellings
    assert not any("_" in spelling for spelling in spellings)


def test_the_market_teaches_its_spellings() -> None:
    names = GpuNames()
    assert not names.is_known(gpu.model("rtx 9999 ultra"))
    names.learn(["RTX 9999 Ultra", "RTX 9999 Ultra", "", "GeForce RTX 9999 ultra"])
    assert names.is_known(gpu.model("RTX_9999_ULTRA"))
    assert names.spellings([gpu.model("rtx 9999 ultra")]) == (
        "RTX 9999 Ultra",
        "GeForce RTX 9999 ultra",
        "RTX 9999 ULTRA",
    )


def test_a_list_without_end_is_not_remembered() -> None:
    names = GpuNames()
    names.learn(f"GPU {number}" for number in range(10_000))
    assert not names.is_known(gpu.model("GPU 9999"))
