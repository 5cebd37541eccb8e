"""Work whose checkpoints are never whole before the next loss: it is said, and nothing else follows."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from agent.decide import plan
from agent.decide.limits.limits import Limits
from agent.decide.reconcile.guards import unfinished_uploads
from agent.domain.fleet import Fleet
from agent.domain.market.interruption import Cause, Loss
from agent.domain.record.event_kind import EventKind
from agent.domain.record.guard_figures import GuardFigures
from strategies.patient import Patient, PatientParams
from tests.support import builders

NOW = builders.NOW
WORK = builders.guarded()
PLACE = builders.TRAIN_0
TOLD = GuardFigures("vast-1", PLACE, "vast", "h1", 1, 1, NOW, checkpoint_bytes=80 * 10**9, took_seconds=60.0)


def fleet(figures: Sequence[GuardFigures], losses: int = 3, every: float = 12.0) -> Fleet:
    lost = [
        Loss(NOW - timedelta(minutes=every * number), PLACE, "vast", f"h{number}", Cause.OUTBID)
        for number in reversed(range(losses))
    ]
    return builders.fleet(
        workloads=(WORK,), losses=tuple(lost), guard_figures={each.lease_id: each for each in figures}
    )


def sentences(*args: object, **changes: object) -> list[str]:
    found = list(unfinished_uploads.alerts(fleet(*args, **changes)))  # type: ignore[arg-type]
    assert all((each.kind, each.key) == (EventKind.ALERT_NEVER_FINISHES, "train") for each in found)
    return [each.sentence for each in found]


def test_a_checkpoint_that_takes_longer_than_the_time_between_losses_is_told_with_both_figures() -> None:
    slow = replace(TOLD, upload_seconds=900.0, manifest="ckpt/00000001-a.json")
    (said,) = sentences([slow])
    assert said.startswith(
        "train never finishes: a checkpoint of 80.00 GB takes 16 min into the bucket, measured on 1 leases, "
        "and a slot is lost every 12 min"
    )


@pytest.mark.parametrize(("losses", "every", "seconds"), [(2, 12.0, 900.0), (3, 17.0, 900.0), (3, 12.0, 600.0)])
def test_nothing_is_said_while_it_fits_or_losses_are_few(losses: int, every: float, seconds: float) -> None:
    assert sentences([replace(TOLD, upload_seconds=seconds, manifest="ckpt/1.json")], losses, every) == []


def test_one_that_was_never_whole_is_told_without_a_time_that_nobody_measured() -> None:
    (said,) = sentences([TOLD])
    assert "a slot is lost every 12 min, and no checkpoint of 80.00 GB was ever whole in the bucket" in said
    assert sentences([replace(TOLD, manifest="ckpt/00000001-a.json")]) == []
    assert sentences([replace(TOLD, checkpoint_bytes=None)]) == []
    assert sentences([]) == []


def test_it_changes_no_plan() -> None:
    tuned = {"patient": builders.tuned(Patient(), PatientParams())}
    slow = fleet([replace(TOLD, upload_seconds=900.0, manifest="ckpt/00000001-a.json")])
    assert list(unfinished_uploads.alerts(slow))
    assert plan.plan(slow, tuned, Limits()) == plan.plan(fleet([]), tuned, Limits())
