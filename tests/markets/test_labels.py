import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.domain.market.label import Label
from agent.domain.slot import Slot
from agent.markets import labels

FLEET, INTENT = "0123456789ab", "0123456789abcdef"
names = st.text("abcXYZ0189._-", min_size=1, max_size=64)


@given(names, st.integers(0, 9999))
def test_what_is_written_is_read_back(workload: str, index: int) -> None:
    label = Label(FLEET, Slot(workload, index), INTENT)
    written = labels.text(label)
    assert labels.parse(written) == label
    assert len(written) <= labels.MAX_LABEL


@given(names, st.integers(0, 9999), st.integers(1, 10**18 - 1))
def test_an_epoch_is_read_back_and_makes_no_other_label(workload: str, index: int, epoch: int) -> None:
    label = Label(FLEET, Slot(workload, index), INTENT, epoch)
    written = labels.text(label)
    parsed = labels.parse(written)
    assert parsed is not None
    assert parsed.epoch == epoch
    assert parsed == labels.parse(labels.text(Label(FLEET, Slot(workload, index), INTENT))) == label
    assert len(written) <= labels.MAX_LABEL
    assert labels.parse(labels.short_text(label)) == Label(FLEET, Slot("", index), INTENT)


@given(names, st.integers(0, 9999))
def test_a_short_name_has_all_but_the_workload(workload: str, index: int) -> None:
    written = labels.short_text(Label(FLEET, Slot(workload, index), INTENT))
    assert labels.parse(written) == Label(FLEET, Slot("", index), INTENT)
    assert len(written) <= labels.MAX_SHORT_LABEL
    assert re.fullmatch("[a-z0-9-]+", written)


@given(st.text(max_size=80))
def test_a_persons_label_is_not_ours(written: str) -> None:
    assert labels.parse(written) is None


@pytest.mark.parametrize(
    "written",
    [
        f"gpubid:{FLEET}:train:0:{INTENT} ",
        f"gpubid:{FLEET}:train:0:{INTENT}\n",
        f"Gpubid:{FLEET}:train:0:{INTENT}",
        f"gpubid:{FLEET.upper()}:train:0:{INTENT}",
        f"gpubid:{FLEET}:tr:ain:0:{INTENT}",
        f"gpubid:{FLEET}:train:-1:{INTENT}",
        f"gpubid:{FLEET}:{'x' * 65}:0:{INTENT}",
        f"gpubid:{FLEET}:train:0:{INTENT[:-1]}",
        f"gpubid:{FLEET}::0:{INTENT}",
        f"gpubid:{FLEET}:train:0:{INTENT}:e0",
        f"gpubid:{FLEET}:train:0:{INTENT}:e",
        f"gpubid:{FLEET}:train:0:{INTENT}:12",
        f"gpubid:{FLEET}:train:0:{INTENT}:e{'1' * 19}",
        f"gpubid-{FLEET}-train-0-{INTENT}",
        f"gpubid-{FLEET}-12345-{INTENT}",
        f"gpubid-{FLEET}-0-{INTENT}-2",
    ],
)
def test_almost_is_not_ours(written: str) -> None:
    assert labels.parse(written) is None
