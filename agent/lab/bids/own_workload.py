"""A workload of the operator's own in the bench: its hardware, prices, sizes and checkpoint; one slot."""

from dataclasses import replace

from agent.config import problems
from agent.domain.work.workload import Workload
from agent.lab.bids import day


def rehearsed(work: Workload) -> Workload:
    """Return one slot of a workload as the rehearsed market runs it.

    Regions, filters in the market's grammar and deadlines are not modelled. The workload runs until the day ends.
    """
    return replace(
        day.workload(""),
        name=work.name,
        image=work.image,
        max_price=work.max_price,
        max_price_by_gpu=work.max_price_by_gpu,
        requirements=replace(work.requirements, regions=(), query=""),
        disk_gb=work.disk_gb,
        image_gb=work.image_gb,
        dataset_gb=work.dataset_gb,
        checkpoint=work.checkpoint,
        may_lose_disk=work.may_lose_disk,
    )


def as_facts(work: Workload) -> list[str]:
    """Return all properties of a rehearsed workload that change a day, for the facts of a table."""
    wants, kept, duration = work.requirements, work.checkpoint, problems.duration_text
    models = "/".join(str(model) for model in wants.gpu_models) or "any model"
    needs = [
        f"{wants.min_vram_mb or 0} MB VRAM",
        f"reliability {wants.min_reliability or 0:g}",
        f"{wants.min_inet_down_mbps or 0:g} Mb/s",
        "verified" if wants.verified_only else "verified or not",
        *(["in a data centre"] if wants.datacenter_only else []),
        f"there for {duration(wants.min_end_ahead)}",
    ]
    sizes = [f"image {work.image} of {work.image_gb:g} GB", f"disk {work.disk_gb:g} GB", f"data {work.dataset_gb:g} GB"]
    keeps = [
        f"checkpoint at {kept.place.value} every {duration(kept.interval)} of {kept.size_gb:g} GB",
        f"restored in {duration(kept.restore)}",
        *([] if kept.takes is None else [f"each takes {duration(kept.takes)}"]),
        "disk may be lost" if work.may_lose_disk else "disk may not be lost",
    ]
    return [work.name, f"{wants.gpus}x {models} at {work.prices}", *needs, *sizes, *keeps]
