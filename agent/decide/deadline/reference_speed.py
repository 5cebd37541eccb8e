"""The DLPerf of a deadline's reference GPU, by which the speed of a GPU is estimated until it is measured.

Searches ask only for a workload's own models. So the reference may never be seen, or not since the start. Then the
figure in the ledger counts, and without one the benchmark of its card.

Invariant: without any figure every unmeasured GPU counts as fast as the reference, and each decision says so.
"""

from collections.abc import Mapping
from dataclasses import replace

from agent.domain import card_benchmarks
from agent.domain.fleet import Fleet
from agent.domain.market.gpu import GpuModel
from agent.domain.work.decision import Reason
from agent.domain.work.workload import Workload

SAME = 0.05
"""A median that differs by less than this share is not recorded again: each search shows other hosts."""


def dlperf(fleet: Fleet, work: Workload) -> float:
    """Return the DLPerf of a slice of a workload's reference GPU; 0 if it is unknown, or if none is named."""
    model, gpus = work.deadline.reference_gpu if work.deadline is not None else None, work.requirements.gpus
    if model is None:
        return 0.0
    return fleet.typical.get((model, gpus)) or card_benchmarks.dlperf(model) * gpus


def news(recorded: Mapping[tuple[GpuModel, int], float], fleet: Fleet) -> dict[tuple[GpuModel, int], float]:
    """Return the DLPerf to record, by model and number of GPUs: that of references, if it is new or has changed."""
    named = {(work.deadline.reference_gpu, work.requirements.gpus) for work in fleet.workloads if work.deadline}
    seen = {key: figure for key, figure in fleet.typical.items() if key in named}
    return {key: figure for key, figure in seen.items() if abs(figure - recorded.get(key, 0.0)) > SAME * figure}


def told(reason: Reason, fleet: Fleet, work: Workload) -> Reason:
    """Return a reason; if the reference has no figure, it says so."""
    model = work.deadline.reference_gpu if work.deadline is not None else None
    if model is None or dlperf(fleet, work):
        return reason
    unknown = f"the DLPerf of {model} is unknown, so every GPU without a measured speed counts as fast as that"
    return replace(reason, sentence=f"{reason.sentence}; {unknown}")
