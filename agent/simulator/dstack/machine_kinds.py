"""Every type of machine that the clouds behind the server rent out, with its price."""

import dataclasses
from collections.abc import Iterator

from agent.simulator.dstack import assumed_figures
from agent.simulator.dstack.model import Kind


def kinds() -> Iterator[Kind]:
    """Yield every type of machine of every cloud."""
    for (backend, gpu), cents in {**assumed_figures.CENTS, **assumed_figures.ASSUMED_CENTS}.items():
        for region in assumed_figures.REGIONS[backend]:
            for count in assumed_figures.COUNTS:
                name = f"{gpu.lower()}-{count}x"
                kind = Kind(backend, region, name, gpu, assumed_figures.MEMORY_GB[gpu], count, cents * count)
                yield kind
                if backend in assumed_figures.SPOT_CLOUDS:
                    each = assumed_figures.SPOT_CENTS.get((backend, gpu), round(cents * assumed_figures.SPOT_SHARE))
                    yield dataclasses.replace(kind, cents=each * count, is_spot=True)
