"""A catalogue of baselines: every published figure, looked up by cloud, GPU model and tenure.

Invariants:
1. A price leaves only as a `Baseline` or its `Quote`; both carry date and source.
2. The order is by price per GPU, the cheapest first: a comparison with the first of them flatters us least.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.config import problems
from agent.domain.market import gpu
from agent.domain.market.baseline import Baseline
from agent.domain.market.gpu import GpuModel
from agent.domain.market.tenure import Tenure


class UnknownBaseline(Exception):
    """No figure fits. `code` is unknown_cloud or no_figure; `sentence` says which figures there are instead."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Every figure; `names` maps a spelling to the models that it may mean, `families` a model to its family."""

    figures: tuple[Baseline, ...]
    names: Mapping[GpuModel, frozenset[GpuModel]] = field(default_factory=dict)
    families: Mapping[GpuModel, GpuModel] = field(default_factory=dict)

    @property
    def clouds(self) -> tuple[str, ...]:
        """Every cloud with a figure."""
        return tuple(sorted({figure.cloud for figure in self.figures}))

    def find(self, model: str, cloud: str | None = None, tenure: Tenure | None = None) -> tuple[Baseline, ...]:
        """Return the figures for a model in any spelling; a family means every form of it.

        A figure whose source names only the family fits all its forms, and says so in its note.
        """
        meant = self._meant(model)
        figures = (
            figure
            for figure in self.figures
            if figure.gpu in meant and cloud in {None, figure.cloud} and tenure in {None, figure.tenure}
        )
        return tuple(sorted(figures, key=_order))

    def cheapest(self, cloud: str, model: str, tenure: Tenure = Tenure.ON_DEMAND) -> Baseline:
        """Return the cheapest figure per GPU of a model at a cloud.

        Raises:
            UnknownBaseline: unknown_cloud, no_figure.
        """
        if cloud not in self.clouds:
            fix = problems.nearest(cloud, self.clouds)
            raise UnknownBaseline("unknown_cloud", f"no price of {problems.shown(cloud)} is known; {fix}")
        figures = self.find(model, cloud, tenure)
        if not figures:
            others = sorted({figure.cloud for figure in self.find(model, tenure=tenure)})
            known = f"it is known at {', '.join(others)}" if others else "nor is it at any other cloud"
            if tenures := sorted({figure.tenure.value for figure in self.find(model, cloud)}):
                known += f"; at {cloud} only its {' and '.join(tenures)} price is"
            raise UnknownBaseline(
                "no_figure", f"the {tenure.value} price of {problems.shown(model)} at {cloud} is not known; {known}"
            )
        return figures[0]

    def _meant(self, model: str) -> frozenset[GpuModel]:
        canonical = gpu.model(model)
        models = self.names.get(canonical, frozenset((canonical,)))
        return models | {self.families[one] for one in models if one in self.families}


def _order(figure: Baseline) -> tuple[float, str, str, str, str]:
    return figure.least.micros / figure.gpus, figure.cloud, figure.tier, figure.gpu, figure.dated
