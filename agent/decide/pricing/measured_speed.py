"""Measured speeds of hosts, compared with those of other hosts with the same model; DLPerf is the prior.

A check measures products of matrices. Its figure for one DLPerf differs between models. So a host's speed per promised
DLPerf is compared with that of all hosts with its model. That typical speed is the lower median over owners, of the
median over an owner's hosts, of the median over a host's checks. Figures far above those of a third of the owners are
left out.

Invariants:
1. A measured speed only lowers a promised DLPerf. A host that claims to be fast keeps its DLPerf, as without the check.
   The search for offers relies on that.
2. No host loses more than 1 - `LEAST` of its DLPerf, and none before hosts of `FEWEST_VOICES` owners reported speeds.
   Only more than half of the owners together can raise the median, and with it the price that we pay for their hosts.
3. The promise counts as `PRIOR_CHECKS` checks that found exactly the promised speed, so that one bad check does not
   decide alone.
"""

import statistics
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from agent.domain import card_benchmarks
from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HostKey, OwnerKey, voice
from agent.domain.record.host_check import HostCheck

FEWEST_VOICES = 3
PRIOR_CHECKS = 1.0
"""Assumed."""
LEAST = 0.5
"""Assumed: `accept_floor` must reject a host that is even slower."""
MOST_ABOVE = 3.0
"""Figures above this multiple of the lower-third figure are left out: cards of one model do not differ by more.
Assumed."""
LEAST_TFLOPS, MOST_TFLOPS = 0.01, 100_000.0
LEAST_DLPERF, MOST_DLPERF = 0.01, 1_000_000.0
"""A figure outside this range is not of a GPU. The bounds prevent a division by zero after a forged one."""
Speeds = Mapping[tuple[HostKey, GpuModel], float]
"""The share of DLPerf that a host with a model keeps: above 0, at most 1. A missing host keeps all of it."""
UNMEASURED: Speeds = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Typical:
    """The lower median of one figure over owners, and the number of owners."""

    figure: float
    voices: int

    @property
    def is_known(self) -> bool:
        """Whether hosts of enough owners reported it."""
        return self.voices >= FEWEST_VOICES


def speeds(checks: Iterable[HostCheck]) -> Speeds:
    """Return the share of its promised DLPerf that each measured host keeps. Models need reports of enough owners."""
    by_model: dict[tuple[str, GpuModel], list[HostCheck]] = {}
    for check in checks:
        if _promised(check) is not None:
            by_model.setdefault((check.market, check.gpu), []).append(check)
    found: dict[tuple[HostKey, GpuModel], float] = {}
    for (_, model), mine in by_model.items():
        typical = _typical(mine, _promised)
        if typical is None or not typical.is_known:
            continue
        for host, measured in _by_host(mine, _promised).items():
            share = statistics.median(measured) / typical.figure
            found[host, model] = min(max(_weighed(share, len(measured)), LEAST), 1.0)
    return found


def benchmarks(checks: Iterable[HostCheck], models: Collection[GpuModel]) -> Mapping[GpuModel, float]:
    """Return DLPerf for one GPU of models that have no benchmark, as far as our own checks measured them.

    It is the typical speed of the model, divided by what one promised DLPerf measures on the other models: the median
    over these. Such pools show no owners, so it takes as many checks as speeds take owners, and is no more than that of
    the fastest known card.
    """
    by_model: dict[GpuModel, list[HostCheck]] = {}
    for check in checks:
        by_model.setdefault(check.gpu, []).append(check)
    others = (_typical(mine, _promised) for model, mine in by_model.items() if model not in models)
    rates = [each.figure for each in others if each is not None]
    enough = [model for model in models if len(by_model.get(model, ())) >= FEWEST_VOICES and rates]
    measured = {model: _typical(by_model[model], _tflops) for model in enough}
    return {
        model: min(each.figure / statistics.median(rates), card_benchmarks.MOST)
        for model, each in measured.items()
        if each is not None
    }


def typical(checks: Iterable[HostCheck], model: GpuModel, other_than: HostKey, owner_id: str = "") -> Typical | None:
    """Return the lower median speed of one GPU of a model (tera-operations/s), over all owners except a host's."""
    mine = voice(other_than, OwnerKey(other_than.market, owner_id))
    others = (each for each in checks if each.gpu == model and each.host != other_than and each.voice != mine)
    return _typical(others, _tflops)


def by_host(checks: Iterable[HostCheck]) -> Mapping[tuple[HostKey, GpuModel], list[float]]:
    """Return the measured speeds of each host with a model, in tera-operations a second."""
    found: dict[tuple[HostKey, GpuModel], list[float]] = {}
    for check in checks:
        tflops = _tflops(check)
        if tflops is not None:
            found.setdefault((check.host, check.gpu), []).append(tflops)
    return found


def _weighed(share: float, checks: int) -> float:
    return (PRIOR_CHECKS + checks * share) / (PRIOR_CHECKS + checks)


def _tflops(check: HostCheck) -> float | None:
    tflops = check.matmul_tflops
    return tflops if tflops is not None and LEAST_TFLOPS <= tflops <= MOST_TFLOPS else None


def _promised(check: HostCheck) -> float | None:
    """Return the measured speed per promised DLPerf of one GPU, or None without both figures."""
    tflops = _tflops(check)
    is_promised = check.gpus > 0 and LEAST_DLPERF <= check.dlperf <= MOST_DLPERF
    return tflops * check.gpus / check.dlperf if tflops is not None and is_promised else None


def _by_host(checks: Iterable[HostCheck], figure: Callable[[HostCheck], float | None]) -> Mapping[HostKey, list[float]]:
    found: dict[HostKey, list[float]] = {}
    for check in checks:
        measured = figure(check)
        if measured is not None:
            found.setdefault(check.host, []).append(measured)
    return found


def _typical(checks: Iterable[HostCheck], figure: Callable[[HostCheck], float | None]) -> Typical | None:
    known = list(checks)
    owners = {check.host: check.voice for check in known}
    voices: dict[str, list[float]] = {}
    for host, measured in _by_host(known, figure).items():
        voices.setdefault(owners[host], []).append(statistics.median(measured))
    if not voices:
        return None
    figures = sorted(statistics.median(hosts) for hosts in voices.values())
    most = MOST_ABOVE * figures[len(figures) // 3]
    believed = [each for each in figures if each <= most]
    return Typical(statistics.median_low(believed), len(figures))
