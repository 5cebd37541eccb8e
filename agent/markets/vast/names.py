"""Canonical GPU models -> the market's own spellings; a filter in another spelling matches nothing."""

from collections.abc import Iterable

from agent.domain.market import gpu
from agent.domain.market.gpu import GpuModel
from agent.markets import text

# First the spellings that upper case or a missing maker's name would hide, then the most common plain ones.
# fmt: off
_KNOWN = (
    "RTX 2080 Ti", "RTX 3060 Ti", "RTX 3060 laptop", "RTX 3070 Ti", "RTX 3070 laptop", "RTX 3080 Ti", "RTX 3090 Ti",
    "RTX 4060 Ti", "RTX 4060 laptop", "RTX 4070 Ti", "RTX 4070S Ti", "RTX 4070 laptop", "RTX 4080 laptop",
    "RTX 4090 Ti", "RTX 5060 Ti", "RTX 5070 Ti", "RTX 5090 Ti", "GTX 1050 Ti", "GTX 1070 Ti", "GTX 1080 Ti",
    "GTX 1650 Ti", "GTX 1660 Ti", "Titan RTX", "Titan V", "Titan X", "Titan Xp", "RTX 2000Ada", "RTX 4000Ada",
    "RTX 4500Ada", "RTX 5000Ada", "RTX 5880Ada", "RTX 6000Ada", "RTX PRO 4000 Mobile", "RTX PRO 6000 Max-Q",
    "Tesla K80", "Tesla P4", "Tesla P40", "Tesla P100", "Tesla T4", "Tesla V100", "Quadro P2000", "Quadro P4000",
    "Quadro P5000", "Quadro P6000", "Quadro GP100", "Quadro GV100", "InstinctMI50", "InstinctMI100", "InstinctMI210",
    "InstinctMI250X", "Pro V620", "Radeon VII", "Radeon Pro VII", "P104-100", "P106-100",
    "RTX 2080", "RTX 3060", "RTX 3070", "RTX 3080", "RTX 3090", "RTX 4060", "RTX 4070", "RTX 4070S", "RTX 4080",
    "RTX 4080S", "RTX 4090", "RTX 4090D", "RTX 5060", "RTX 5070", "RTX 5080", "RTX 5090", "RTX A4000", "RTX A4500",
    "RTX A5000", "RTX A6000", "RTX PRO 4000", "RTX PRO 4500", "RTX PRO 5000", "RTX PRO 6000 S", "RTX PRO 6000 WS",
    "Q RTX 6000", "Q RTX 8000", "A10", "A40", "A100 PCIE", "A100 SXM4", "L4", "L40", "L40S", "H100 PCIE", "H100 SXM",
    "H100 NVL", "H200", "H200 NVL", "B200",
)
# fmt: on

_MAX_SPELLINGS = 4096
"""The market has about 150 models; a longer list is wrong."""


class GpuNames:
    """The known spellings: a built-in table, corrected by the market's own rows."""

    def __init__(self) -> None:
        self._spellings: dict[GpuModel, tuple[str, ...]] = {}
        self.learn(_KNOWN)

    def learn(self, names: Iterable[str]) -> None:
        """Remember the market's spelling of these models."""
        for name in names:
            spelling = text.clean(name, 64)
            known = self._spellings.get(gpu.model(spelling), ())
            if spelling and spelling not in known and len(self._spellings) < _MAX_SPELLINGS:
                self._spellings[gpu.model(spelling)] = (*known, spelling)

    def is_known(self, model: GpuModel) -> bool:
        """Return whether the market has written this model."""
        return model in self._spellings

    def spellings(self, models: Iterable[GpuModel]) -> tuple[str, ...]:
        """Return every spelling to search for, with the canonical one: most models are spelled so."""
        names = (name for model in models for name in (*self._spellings.get(model, ()), str(model)))
        return tuple(dict.fromkeys(names))
