"""A slot: one place of a workload."""

import msgspec


class Slot(msgspec.Struct, frozen=True, order=True):
    """One place of a workload. A slot has one lease, and two only while it moves."""

    workload: str
    index: int

    def __str__(self) -> str:
        return f"{self.workload}/{self.index}"
