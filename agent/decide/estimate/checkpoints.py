"""The best time between two checkpoints.

Sources: J. W. Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974;
J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future Generation Computer
Systems 22(3), 2006, equation 37. Both take interruptions as memoryless.
"""

import math


def young(write_hours: float, hours_between: float) -> float:
    """Return sqrt(2 x write x mean time between interruptions), in hours."""
    return math.sqrt(2.0 * write_hours * hours_between)


def daly(write_hours: float, hours_between: float) -> float:
    """Return Daly's interval in hours: Young's, corrected; the mean time itself if writing takes twice that or more.

    The interval counts work only, without the time to write.
    """
    if write_hours >= 2.0 * hours_between:
        return hours_between
    ratio = write_hours / (2.0 * hours_between)
    return young(write_hours, hours_between) * (1.0 + math.sqrt(ratio) / 3.0 + ratio / 9.0) - write_hours
