"""The table `[dstack]` of a climate, with settings for this market alone."""

import dataclasses

CAPACITY = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Dstack:
    """A cloud's stock is free at first; host deaths of the climate apply to its machines too."""

    capacity: int = CAPACITY  # machines of each type and region
    tells_capacity: bool = True  # else every cloud lets the server find out with the order, as the largest always do
    gives_up: float = 0.0  # share of the ends that the server gives up although the machine goes on
    no_client: float = 0.0  # share of the tries in which the server cannot make a client of a cloud, and ignores it
