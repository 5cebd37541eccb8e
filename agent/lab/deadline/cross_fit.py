"""The part that a fit leaves out, so that no run is scored on data that its hazards were fitted on.

It is a separate module, because the command line's help names the choices without loading numpy.
"""

from enum import StrEnum


class CrossFit(StrEnum):
    """`none` takes the shipped hazards. `pool` leaves out the window's zone, and `time` its days."""

    NONE = "none"
    POOL = "pool"
    TIME = "time"
