"""Tenure: the terms of a lease."""

from enum import Enum


class Tenure(Enum):
    """The terms of a lease."""

    ON_DEMAND = "on_demand"
    INTERRUPTIBLE = "interruptible"
    RESERVED = "reserved"
