"""A host that was seen not to have what its offer promises is not rented again by who rejects for it."""

from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest

from agent.decide import explain, plan
from agent.decide.limits.limits import Limits
from agent.decide.pricing import failed_checks
from agent.domain.fleet import Fleet
from agent.domain.market.gpu import GpuModel
from agent.domain.record.host_check import HostCheck
from agent.domain.work.guard_terms import Accept, GuardTerms
from tests.decide.pricing.test_slow_hosts import CHEAP, SOUND, TUNED, rented
from tests.support import builders

OLD = timedelta(days=29)
SCRIPT = "python3 mine.py"


def check(ago: timedelta = OLD, host: str = CHEAP.host_id, *, model: str = CHEAP.gpu, gpus: int = 1) -> HostCheck:
    """Return a check that saw nothing."""
    at = builders.NOW - ago
    return HostCheck(f"{host}-{at:%d%H}", CHEAP.market, host, "", GpuModel(model), gpus, 100.0, at)


def fewer(ago: timedelta = OLD, seen: int = 0, gpus: int = 1) -> HostCheck:
    return replace(check(ago, gpus=gpus), seen_gpus=seen)


def card(name: str, ago: timedelta = OLD, model: str = CHEAP.gpu) -> HostCheck:
    return replace(check(ago, model=model), seen_gpu=name)


def fleet(*checks: HostCheck, accept: Accept = Accept.REJECT) -> Fleet:
    work = builders.guarded()
    assert work.guard is not None
    work = replace(work, guard=replace(work.guard, accept=accept, accept_script=SCRIPT))
    made = builders.fleet(workloads=(work,), markets={"vast": builders.view(offers=(CHEAP, SOUND))})
    return msgspec.structs.replace(made, host_checks={each.lease_id: each for each in checks})


def failed(ago: timedelta = OLD, *, by: str | None = None, defect: str = "CUDA does not start") -> HostCheck:
    """Return a check that failed, or without a defect passed; `by` is the script that said so."""
    return replace(
        check(ago), defect=defect, script=None if by is None else GuardTerms((), accept_script=by).script_digest
    )


NOW_AND_THEN = timedelta(hours=1)
OTHER = "NVIDIA GeForce GTX 1070"


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (fleet(fewer()), "0 of 1 GPUs were there"),
        (fleet(card(OTHER)), f"its GPU was {OTHER} and not {CHEAP.gpu}"),
        (fleet(fewer(), check(NOW_AND_THEN)), "0 of 1 GPUs were there"),
        (fleet(card(CHEAP.gpu), card(OTHER, NOW_AND_THEN)), f"its GPU was {OTHER} and not {CHEAP.gpu}"),
        (fleet(fewer(), card(CHEAP.gpu, NOW_AND_THEN)), "0 of 1 GPUs were there"),
        (fleet(failed()), "CUDA does not start"),
        (fleet(failed(), check(NOW_AND_THEN)), "CUDA does not start"),
        (
            fleet(failed(by=SCRIPT, defect="accept_script ended with exit code 1")),
            "accept_script ended with exit code 1",
        ),
        (fleet(failed(by=SCRIPT), failed(NOW_AND_THEN, defect="")), "CUDA does not start"),
    ],
    ids=[
        "number",
        "model",
        "a later check saw nothing",
        "a later one is another",
        "only the model is proven",
        "defect",
        "a later check could not say",
        "script",
        "later without the script",
    ],
)
def test_a_host_that_broke_its_promise_is_not_rented_again_and_explain_says_why(made: Fleet, why: str) -> None:
    assert rented(made) == [SOUND.offer_id]
    told = explain.explain(made, plan.plan(made, TUNED, Limits()), made.workloads[0])
    assert [each.offer.offer_id for each in told.candidates] == [SOUND.offer_id]
    (refused,) = told.refused
    assert (refused.offer.offer_id, refused.why.code) == (CHEAP.offer_id, "not_as_rented")
    assert refused.why.sentence.startswith(f"{why} at the check of 2026-1")
    assert ": not tried again before 2026-1" in refused.why.sentence


@pytest.mark.parametrize(
    "made",
    [
        fleet(fewer(failed_checks.FORGOTTEN_AFTER)),
        fleet(fewer(), fewer(NOW_AND_THEN, seen=1)),
        fleet(card(OTHER), card(f"NVIDIA GeForce {CHEAP.gpu}", NOW_AND_THEN)),
        fleet(fewer(seen=1, gpus=2)),
        fleet(card("Tesla V100", model="GTX 1080")),
        fleet(fewer(), accept=Accept.TELL),
        fleet(replace(fewer(), market="runpod")),
        fleet(failed(), failed(NOW_AND_THEN, defect="")),
        fleet(failed(), failed(NOW_AND_THEN, by=SCRIPT, defect="")),
        fleet(failed(by="another text")),
        fleet(failed(failed_checks.FORGOTTEN_AFTER)),
        fleet(replace(failed(), gpu=GpuModel("Tesla V100"))),
    ],
    ids=[
        "long ago",
        "all there now",
        "the right card now",
        "enough of them",
        "another offer",
        "told",
        "elsewhere",
        "sound now",
        "sound now by the script too",
        "another script",
        "failed long ago",
        "another card failed",
    ],
)
def test_any_other_host_is_rented_by_its_price(made: Fleet) -> None:
    assert rented(made) == [CHEAP.offer_id]
