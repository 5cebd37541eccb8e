"""Images: how large they are and how long a host needs to pull one."""

import dataclasses
import math
import random
import zlib

from agent.simulator import recorded_figures
from agent.simulator.instances.rented import Ground

# compressed GB of well-known images, by a word in their name; assumed
KNOWN: tuple[tuple[str, float], ...] = (
    ("alpine", 0.004),
    ("busybox", 0.002),
    ("ubuntu", 0.03),
    ("debian", 0.05),
    ("python", 0.4),
    ("cuda", 3.5),
    ("pytorch", 6.5),
    ("tensorflow", 3.8),
    ("vllm", 9.5),
    ("comfyui", 7.5),
)


def size_gb(image: str) -> float:
    """Return the compressed size of an image; the same name has always the same."""
    name = image.lower()
    for word, size in KNOWN:
        if word in name:
            return size
    median, deviation = recorded_figures.IMAGE_GB
    rng = random.Random(zlib.crc32(name.encode()))
    return round(median * math.exp(deviation * rng.gauss(0.0, 1.0)), 2)


@dataclasses.dataclass(slots=True)
class Pull:
    """The plan of one contract's pull: how long in all, and whether and where it breaks."""

    seconds: float
    breaks_at: float | None = None  # share of the image after which it fails


def plan(rng: random.Random, host: Ground, image_gb: float, failure: float) -> Pull:
    """Draw a pull on a host."""
    mbits = min(host.inet_down * rng.uniform(0.35, 0.95), recorded_figures.PULL_MBITS)
    seconds = (
        image_gb * 8_000.0 / max(mbits, 1.0)
        + image_gb / recorded_figures.UNPACK_GB_PER_SECOND * rng.uniform(0.7, 2.0)
        + 2.0
    )
    slow, times, breaks, where = rng.random(), rng.uniform(4.0, 30.0), rng.random(), rng.uniform(0.1, 1.0)
    if slow < recorded_figures.SLOW_PULL:
        seconds *= times
    seconds = min(seconds, recorded_figures.LONGEST_PULL_SECONDS)
    return Pull(seconds, where if breaks < failure else None)
