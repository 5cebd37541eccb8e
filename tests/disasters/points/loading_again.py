"""Point 4: what ran before, loads again at a look, and is lost before the next may have run in between (spend-bounds).

Only Vast bills no GPU that loads, and its record has the resumption before the first look at it.
"""

from collections.abc import Iterator

from agent.simulator.instances.container_state import Container
from agent.simulator.vast.model import Contract
from tests.disasters.truth import Box, Truth


class LoadingAgain:
    """Remembers what the last true listing of Vast showed loading again."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self._loading: dict[str, Box] = {}

    def lost(self, market: str, listed: float) -> Iterator[Box]:
        """Yield what a true listing shows stopped, or no more, that the one before showed loading again."""
        if market != "vast":
            return
        yield from (box for box in self._loading.values() if _is_over(box, listed))
        loading = {box.instance_id: box for box in self._truth.live if _loads_again(box)}
        # What stopped after that listing nobody has seen stop.
        unseen = {key: box for key, box in self._loading.items() if not _holds(box) and not _is_over(box, listed)}
        self._loading = loading | unseen


def _loads_again(box: Box) -> bool:
    thing = box.thing
    is_loading = box.label is not None and thing.holds_gpu and thing.container is Container.LOADING
    return isinstance(thing, Contract) and is_loading and thing.first_started is not None


def _holds(box: Box) -> bool:
    return box.is_live and box.thing.holds_gpu


def _is_over(box: Box, listed: float) -> bool:
    thing = box.thing
    stopped = thing.ended or (thing.stopped_since if isinstance(thing, Contract) else None)
    return not _holds(box) and stopped is not None and stopped <= listed
