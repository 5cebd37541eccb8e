"""Draws the hosts of each type: their number is assumed, their largest pod is recorded."""

import random
import string

from agent.simulator.runpod import assumed_figures, places
from agent.simulator.runpod.model import Host
from agent.simulator.runpod.models import CPU, TYPES, Cloud, GpuType

FIRST_MACHINE = 9_000_001  # apart from the machine numbers of the other market
LETTERS = string.ascii_lowercase + string.digits
_CUDAS = ("12.4", "12.6", "12.8", "12.8", "13.0")


def draw(rng: random.Random, scale: float) -> dict[int, Host]:
    """Draw every host, by number."""
    found: dict[int, Host] = {}
    for gpu in (*TYPES, CPU):
        for cloud in gpu.clouds():
            for order in range(max(1, round(rng.randint(*assumed_figures.HOSTS_PER_TYPE) * scale))):
                host = _host(rng, FIRST_MACHINE + len(found), gpu, cloud, is_largest=order == 0)
                found[host.machine_id] = host
    return found


def token(rng: random.Random, length: int) -> str:
    """Draw a name in the market's style."""
    return "".join(rng.choices(LETTERS, k=length))


def _host(rng: random.Random, machine_id: int, gpu: GpuType, cloud: Cloud, *, is_largest: bool) -> Host:
    is_secure = cloud is Cloud.SECURE
    center = rng.choice(places.DATA_CENTERS)
    if gpu.data_centers:
        center = places.BY_ID[rng.choice(gpu.data_centers)]
    country = rng.choice(places.COMMUNITY_COUNTRIES)
    size = rng.choice((gpu.most, min(8, gpu.most)) if is_secure else (1, 2, 4, gpu.most))
    return Host(
        machine_id=machine_id,
        token=token(rng, 12),
        gpu=gpu,
        cloud=cloud,
        gpu_count=gpu.most if is_largest else min(size, gpu.most),
        center_id=center.center_id if is_secure else None,
        country=center.country if is_secure else country,
        cuda=rng.choice(_CUDAS),
        vcpu_per_gpu=rng.choice((6, 8, 12, 16)),
        ram_gb_per_gpu=rng.choice((1, 2, 2, 3)) * max(gpu.memory_gb // 2, 16),
        inet_down=rng.uniform(*assumed_figures.INET_DOWN),
        public_ip=f"198.51.{rng.randrange(256)}.{rng.randrange(1, 255)}",
        has_public_ip=is_secure or rng.random() < 0.5,  # noqa: PLR2004 - as many with as without
    )
