"""gpubid: keeps GPU workloads alive on interruptible marketplace capacity."""

__version__ = "0.1.0"
