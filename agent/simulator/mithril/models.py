"""The types of instance that this market sells. Ids and names of most are recorded; their other figures are assumed."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class InstanceType:
    """One type of instance: a virtual machine with some GPUs."""

    fid: str
    name: str
    gpu_type: str
    gpu_count: int
    gpu_memory_gb: int
    socket: str
    cpus: int
    ram_gb: int
    local_gb: int
    infiniband: int = 0  # cards


A100_1X = InstanceType("it_RrgkIZz6c9BZu5gi", "a100-80gb.sxm.1x", "A100", 1, 80, "SXM4", 22, 120, 1_000)
A100_2X = InstanceType("it_TiAPxzKNi4xO0IAr", "a100-80gb.sxm.2x", "A100", 2, 80, "SXM4", 44, 240, 2_000)
A100_4X = InstanceType("it_4TugeYWOov5FllEf", "a100-80gb.sxm.4x", "A100", 4, 80, "SXM4", 88, 480, 4_000)
A100_8X = InstanceType("it_Sg1nDx1I8NFep60J", "a100-80gb.sxm.8x", "A100", 8, 80, "SXM4", 176, 960, 8_000)
H100_8X = InstanceType("it_XqgKWbhZ5gznAYsG", "h100-80gb.sxm.8x", "H100", 8, 80, "SXM5", 192, 1_800, 7_800, 8)
H100_8X_OLDER = InstanceType("it_5ECSoHQjLBzrp5YM", "h100-80gb.sxm.8x", "H100", 8, 80, "SXM5", 192, 1_800, 7_800, 8)
B200_1X = InstanceType("it_HiqFjGT37y3fREPT", "neb-b200.sxm.1x", "B200", 1, 180, "SXM6", 20, 224, 0)
# The vendor sells these two as well; their ids are made up.
H200_8X = InstanceType("it_Simulated0H200x8", "h200-141gb.sxm.8x", "H200", 8, 141, "SXM5", 192, 1_800, 7_800, 8)
B200_8X = InstanceType("it_Simulated0B200x8", "b200-180gb.sxm.8x", "B200", 8, 180, "SXM6", 160, 1_792, 0, 8)
TYPES: tuple[InstanceType, ...] = (
    *(A100_1X, A100_2X, A100_4X, A100_8X, H100_8X, H100_8X_OLDER, H200_8X, B200_1X, B200_8X),
)
