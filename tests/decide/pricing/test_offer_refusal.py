"""The offers that fit, and the reasons why the others do not."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.pricing import offer_refusal, useful_hour
from agent.decide.pricing.offer_refusal import OrderedOffers, Unavailable
from agent.domain.market import gpu
from agent.domain.market.host import HostKey
from agent.domain.market.offer import Offer
from agent.domain.work.ready_sign import Readiness, ReadySign
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload
from tests.support import builders
from tests.support.expiring import in_force

NOW = builders.NOW
NOTHING = Unavailable()
WORK = builders.workload(
    requirements=builders.requirements(
        min_vram_mb=24_000,
        min_reliability=0.95,
        min_inet_down_mbps=500.0,
        regions=("SE", "Norway"),
        datacenter_only=True,
        network_volume="nv1",
    ),
    checkpoint=Checkpoint(place=CheckpointPlace.DISK),
    ready=Readiness(ReadySign.PORT, port=8000),
)


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("not_rentable", {"is_rentable": False}),
        ("gpus", {"gpus": 2}),
        ("gpu", {"gpu": gpu.model("RTX 3090")}),
        ("vram", {"vram_mb": 23_999}),
        ("verified", {"is_verified": False}),
        ("datacenter", {"is_datacenter": False}),
        ("network_volume", {"network_volumes": ("nv2",)}),
        ("datacenter_unknown", {"is_datacenter": None}),
        ("reliability", {"reliability": 0.9499}),
        ("inet_down", {"inet_down_mbps": 499.9}),
        ("disk", {"disk_gb": 19.9}),
        ("keeps_no_disk", {"keeps_disk": False}),
        ("no_ports", {"opens_ports": False}),
        ("region", {"region": "Denmark, DK"}),
        ("region", {"region": ""}),
        ("ends_soon", {"ends_at": NOW + timedelta(minutes=119)}),
    ],
    ids=str,
)
def test_each_requirement_refuses_by_name(code: str, changes: dict[str, Any]) -> None:
    refused = offer_refusal.refusal(builders.offer(**changes), WORK, NOW, NOTHING)
    assert refused is not None
    assert refused.code == code
    assert refused.sentence.startswith(("has ", "is ", "cannot ", "loads ", "leaves "))


def test_the_first_requirement_that_fails_is_named() -> None:
    refused = offer_refusal.refusal(builders.offer(gpus=2, is_verified=False, disk_gb=1.0), WORK, NOW, NOTHING)
    assert refused is not None
    assert refused.code == "gpus"


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"vram_mb": 24_000, "reliability": 0.95, "inet_down_mbps": 500.0, "disk_gb": 20.0},
        {"region": "se"},
        {"region": "Oslo, norway"},
        {"ends_at": NOW + offer_refusal.LEAST_STAY},
    ],
)
def test_what_just_meets_every_requirement_fits(changes: dict[str, Any]) -> None:
    assert offer_refusal.refusal(builders.offer(**changes), WORK, NOW, NOTHING) is None


def test_a_workload_that_asks_nothing_takes_anything_of_its_size() -> None:
    work = builders.workload(requirements=builders.requirements(gpu_models=(), verified_only=False))
    odd = builders.offer(gpu=gpu.model("T4"), is_verified=False, reliability=0.0, region="", vram_mb=1)
    assert offer_refusal.refusal(odd, work, NOW, NOTHING) is None


def test_a_proxy_sends_no_requests_to_a_market_that_opens_no_ports() -> None:
    work, closed = builders.workload(has_proxy=True), builders.offer(opens_ports=False, asks_pages=True)
    refused = offer_refusal.refusal(closed, work, NOW, NOTHING)
    assert refused is not None
    assert refused.sentence == "is on vast, which opens no ports, and its proxy sends requests to one"
    assert offer_refusal.refusal(closed, builders.workload(), NOW, NOTHING) is None
    assert offer_refusal.wanted(work) != offer_refusal.wanted(builders.workload())
    assert not offer_refusal.fitting(work, NOW)(closed)


def test_a_host_that_holds_a_lease_of_ours_is_never_rented_again() -> None:
    refused = offer_refusal.refusal(builders.offer(), WORK, NOW, Unavailable(hosts={HostKey("vast", "h1")}))
    assert refused is not None
    assert refused.code == "host_held"
    assert refused.sentence.startswith("already holds ")
    assert offer_refusal.refusal(builders.offer(), WORK, NOW, Unavailable(hosts={HostKey("runpod", "h1")})) is None


@pytest.mark.parametrize("key", ["offer:vast/a1", "host:vast/h1", "owner:vast/o1"])
def test_what_cools_down_rests(key: str) -> None:
    refused = offer_refusal.refusal(
        builders.offer(), WORK, NOW, Unavailable(cooling=in_force({key: "a failed start"}).cooling)
    )
    assert refused is not None
    assert refused.code == "cooldown"
    assert refused.sentence.startswith("is in cooldown after a failed start")
    assert (
        offer_refusal.refusal(
            builders.offer(2), WORK, NOW, Unavailable(cooling=in_force({key: "a failed start"}).cooling)
        )
        is None
    )


MODELS = [gpu.model("RTX 4090"), gpu.model("RTX 3090")]
offers = st.builds(
    builders.offer,
    st.integers(0, 30),
    gpu=st.sampled_from(MODELS),
    gpus=st.integers(1, 2),
    vram_mb=st.sampled_from([16_000, 24_000]),
    dlperf=st.sampled_from([0.0, 40.0, 80.0]),
    reliability=st.sampled_from([0.9, 0.95, 0.99]),
    is_verified=st.booleans(),
    is_datacenter=st.sampled_from([True, False, None]),
    network_volumes=st.sampled_from([(), ("nv1",), ("nv2", "nv3")]),
    region=st.sampled_from(["Sweden, SE", "US", ""]),
    inet_down_mbps=st.sampled_from([100.0, 800.0]),
    disk_gb=st.sampled_from([10.0, 20.0, 200.0]),
    ends_at=st.sampled_from([None, NOW + timedelta(hours=1), NOW + offer_refusal.LEAST_STAY, NOW + timedelta(days=9)]),
    is_rentable=st.booleans(),
    keeps_disk=st.booleans(),
    opens_ports=st.booleans(),
    asks_pages=st.booleans(),
)
works = st.builds(
    builders.workload,
    disk_gb=st.sampled_from([10.0, 20.0]),
    checkpoint=st.builds(Checkpoint, place=st.sampled_from(CheckpointPlace)),
    may_lose_disk=st.booleans(),
    ready=st.sampled_from([Readiness(), *(Readiness(sign, port=8000) for sign in (ReadySign.PORT, ReadySign.HTTP))]),
    requirements=st.builds(
        builders.requirements,
        gpus=st.integers(1, 2),
        gpu_models=st.sampled_from([(), (MODELS[0],), tuple(MODELS)]),
        min_vram_mb=st.sampled_from([None, 24_000]),
        min_reliability=st.sampled_from([None, 0.95]),
        verified_only=st.booleans(),
        datacenter_only=st.booleans(),
        network_volume=st.sampled_from(["", "nv1", "nv3"]),
        regions=st.sampled_from([(), ("SE",), ("us", "SE")]),
        min_inet_down_mbps=st.sampled_from([None, 800.0]),
    ),
)
takens = st.builds(
    Unavailable,
    st.frozensets(st.sampled_from([f"h{number}" for number in range(30)])),
    st.none()
    | st.dictionaries(
        st.sampled_from(["offer:vast/a1", "host:vast/h2", "offer:vast/a3", "slot:train/0"]), st.just("x")
    ),
)


@given(offers, works, takens)
def test_the_quick_test_and_the_reasons_agree(offer: Offer, work: Workload, taken: Unavailable) -> None:
    is_fit = offer_refusal.fitting(work, NOW)(offer) and offer_refusal.is_free(offer, taken)
    assert is_fit is (offer_refusal.refusal(offer, work, NOW, taken) is None)


@given(st.lists(offers, max_size=25), works)
def test_a_book_gives_the_wanted_models_and_counts_in_rising_order_of_the_bound(
    many: list[Offer], work: Workload
) -> None:
    book, wants = OrderedOffers(many), work.requirements
    found = book.rising(wants)
    assert [bound for bound, _ in found] == sorted(useful_hour.least_per_dlperf(row) for _, row in found)
    wanted = [row for row in many if row.gpus == wants.gpus and (not wants.gpu_models or row.gpu in wants.gpu_models)]
    assert sorted(map(id, wanted)) == sorted(id(row) for _, row in found)
    assert book.rising(wants) is found
    fits = offer_refusal.fitting(work, NOW)
    fitting = {row.offer_id for row in many if offer_refusal.refusal(row, work, NOW, NOTHING) is None}
    assert fitting == {row.offer_id for _, row in found if fits(row)}
