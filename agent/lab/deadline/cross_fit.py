"""The part that a fit leaves out, so that no run is scored on data that its hazards were fitted on.

A module of its own: the command line names the choices in its help, for which numpy is not loaded.
"""

from enum import StrEnum


class CrossFit(StrEnum):
    """`none` takes the shipped hazards; `pool` leaves out the window's zone, `time` its days."""

    NONE = "none"
    POOL = "pool"
    TIME = "time"
