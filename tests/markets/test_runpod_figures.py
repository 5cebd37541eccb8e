"""The substitute for the benchmark that RunPod does not give.

Every card that it sells has a figure, with its source.
"""

import json
import os
import pathlib

import pytest

from agent.domain import card_benchmarks
from agent.domain.market import gpu
from agent.markets.runpod import names

FOLDER = os.environ.get("GPUBID_RECORDED", "")
MEASURED = {
    "H100 SXM": 358.6,
    "H100 NVL": 305.3,
    "A100 SXM4": 80.5,
    "RTX PRO 6000 S": 279.1,
    "RTX PRO 6000 WS": 281.8,
    "RTX 2080 Ti": 11.0,
    "RTX 3090": 44.4,
}
SOLD = (
    *("AMD Instinct MI300X OAM", "NVIDIA A100 80GB PCIe", "NVIDIA A100-SXM4-80GB", "NVIDIA A30", "NVIDIA A40"),
    *("NVIDIA B200", "NVIDIA H100 80GB HBM3", "NVIDIA H100 NVL", "NVIDIA H100 PCIe", "NVIDIA H200", "NVIDIA L40S"),
    *(
        "NVIDIA RTX PRO 6000 Blackwell Server Edition",
        "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
        "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
    ),
)


@pytest.mark.parametrize("name", MEASURED)
def test_what_was_measured_is_taken_as_it_was(name: str) -> None:
    assert card_benchmarks.dlperf(gpu.model(name)) == MEASURED[name]


@pytest.mark.parametrize("name", SOLD)
def test_no_data_centre_card_is_worth_nothing(name: str) -> None:
    assert card_benchmarks.dlperf(names.model(name)) > 0


def test_derived_cards_stand_in_the_order_of_their_makers() -> None:
    def speed(name: str) -> float:
        return card_benchmarks.dlperf(names.model(name))

    assert speed("A30") < speed("A100 PCIe") < speed("A100 SXM") < speed("H100 PCIe") < speed("H100 NVL")
    assert speed("H100 NVL") < speed("H100 SXM") == speed("H200 SXM") < speed("B200")
    assert speed("RTX PRO 6000 MaxQ") < speed("RTX PRO 6000")


def test_a_card_nobody_measured_has_no_figure() -> None:
    assert card_benchmarks.dlperf(gpu.model("RTX 9999")) == 0.0


@pytest.mark.skipif(not FOLDER, reason="GPUBID_RECORDED does not name the folder of recordings: types were not checked")
def test_every_recorded_type_has_a_figure() -> None:
    paths = sorted(pathlib.Path(FOLDER).glob("runpod/gpuTypes_*.json"))
    assert paths, f"{FOLDER} holds no answers of gpuTypes"
    types = {
        row["id"] for path in paths for row in json.loads(path.read_text(encoding="utf-8")) if row["id"] != "unknown"
    }
    assert len(types) > 30
    assert [name for name in sorted(types) if card_benchmarks.dlperf(names.model(name)) <= 0] == []
