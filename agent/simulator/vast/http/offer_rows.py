"""Offer rows in the vendor's words: every column a full-width search row has, for any of the three kinds of search.

1. dph_total is dph_base plus storage_total_cost, exactly; storage_total_cost is storage_cost times GB over 720.
2. In a bid search dph_base is min_bid. A slice without a quoted floor has no row there.
3. Columns that never change are made once per slice. Columns that a search tests are cheap; the others are made only
   for its matches.
"""

import zlib
from collections.abc import Mapping
from typing import Any

from agent.simulator.vast.http import filter_grammar
from agent.simulator.vast.model import Host, Slice
from agent.simulator.vast.world import World

HOURS_PER_MONTH = 720.0
DEFAULT_STORAGE_GB = 8.0
BID = "bid"
ON_DEMAND = "ondemand"
RESERVED = "reserved"
KINDS: Mapping[str, str] = {
    "bid": BID,
    "interruptible": BID,
    "on-demand": ON_DEMAND,
    "ondemand": ON_DEMAND,
    "reserved": RESERVED,
}
# How strongly the score punishes doubt about a host. The vendor's formula is unknown; recorded scores of one slice at
# two prices show only that it falls as one over dph_total.
_SCORE_EXPONENT = 4.0


class OfferRows:
    """Makes rows for the slices of one world."""

    def __init__(self, world: World) -> None:
        """Start empty. The columns of a slice that never change are kept once they are made."""
        self._world = world
        self._fixed: dict[int, dict[str, Any]] = {}
        self._columns: frozenset[str] = frozenset()

    def fixed(self, slice_: Slice) -> dict[str, Any]:
        """Return the columns that never change."""
        row = self._fixed.get(slice_.offer_id)
        if row is None:
            row = self._fixed[slice_.offer_id] = fixed_columns(slice_)
        return row

    def prices(self, slice_: Slice, kind: str, storage_gb: float) -> dict[str, Any] | None:
        """Return the columns that change; None where a bid search shows no row."""
        world = self._world
        floor = world.quoted_floor(slice_)
        if slice_.num_gpus == 0:
            base = 0.0
        elif kind == BID:
            if floor is None:
                return None
            base = floor
        else:
            base = world.ask(slice_)
        fixed = self.fixed(slice_)
        disk = slice_.host.storage_price * storage_gb / HOURS_PER_MONTH
        total = base + disk
        per_dollar = 1.0 / total if total else 0.0
        value = (fixed["dlperf"] or 0.0) * per_dollar
        return {
            "dph_base": base,
            "dph_total": total,
            "dph_total_adj": total + fixed["inet_up_cost"] + fixed["inet_down_cost"],
            "discounted_dph_total": total,
            "dlperf_per_dphtotal": value,
            "flops_per_dphtotal": (fixed["total_flops"] or 0.0) * per_dollar,
            "score": value * fixed["reliability"] ** _SCORE_EXPONENT * fixed["rn"],
            "min_bid": floor,
            "storage_total_cost": disk,
            "duration": slice_.host.end_time - world.now,
            "rentable": world.is_rentable(slice_),
            "rented": world.is_rented_by_us(slice_),
        }

    def full(self, slice_: Slice, prices: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row of full width."""
        base, disk, total = prices["dph_base"], prices["storage_total_cost"], prices["dph_total"]
        vram_gb = slice_.host.gpu.vram_mb * max(slice_.num_gpus, 1) / 1024.0
        return {
            **self.fixed(slice_),
            **prices,
            "vram_costperhour": total / vram_gb if vram_gb else None,
            "search": breakdown(base, disk),
            "instance": breakdown(0, disk),
        }

    def all_columns(self) -> frozenset[str]:
        """Return the names of all columns that a filter may use."""
        if not self._columns:
            first = next(iter(self._world.listed()), None)
            self._columns = MOVING_COLUMNS if first is None else MOVING_COLUMNS.union(self.fixed(first))
        return self._columns


def breakdown(gpu: float, disk: float, discount: float = 0) -> dict[str, float]:
    """Return the parts of a price per hour."""
    return {
        "gpuCostPerHour": gpu,
        "diskHour": disk,
        "slaPremiumPerHour": 0.0,
        "totalHour": gpu + disk,
        "discountTotalHour": discount,
        "discountedTotalPerHour": gpu + disk - discount,
    }


def stable_number(text: str) -> int:
    """Return a number for a text, the same in every run."""
    return zlib.crc32(text.encode()) & 0x7FFFFFFF


def host_columns(slice_: Slice) -> dict[str, Any]:
    """Return the columns that an offer and an instance share and that never change."""
    host, gpus, share = slice_.host, slice_.num_gpus, slice_.share
    return {
        **machine_columns(host),
        "compute_cap": host.gpu.compute_cap if gpus else None,
        "cpu_cores_effective": host.cpu_cores * share if gpus else float(host.cpu_cores),
        "cpu_ram": int(host.ram_mb * share),
        "dlperf": host.dlperf_per_gpu * gpus if gpus else None,
        "gpu_frac": share,
        "gpu_name": host.gpu.name if gpus else "N/A",
        "gpu_ram": host.gpu.vram_mb if gpus else None,
        "num_gpus": gpus,
        "total_flops": host.tflops_per_gpu * gpus if gpus else None,
    }


def machine_columns(host: Host) -> dict[str, Any]:
    """Return the columns that all slices of a host share."""
    return {
        "bw_nvlink": host.gpu.nvlink_bw,
        "cpu_arch": "amd64",
        "cpu_cores": host.cpu_cores,
        "cpu_name": host.cpu_name,
        "credit_discount_max": host.credit_discount,
        "cuda_max_good": host.cuda,
        "direct_port_count": host.direct_ports,
        "disk_bw": host.disk_bw,
        "disk_name": host.disk_name,
        "driver_version": host.driver,
        "end_date": host.end_time,
        "external": False,
        "geolocation": host.geolocation,
        "gpu_arch": host.gpu.arch,
        "gpu_display_active": False,
        "gpu_lanes": host.pcie_lanes,
        "gpu_mem_bw": host.memory_bw,
        "has_avx": int(host.has_avx),
        "host_id": host.owner_id,
        "inet_down": host.inet_down,
        "inet_down_cost": host.down_price,
        "inet_up": host.inet_up,
        "inet_up_cost": host.up_price,
        "internet_down_cost_per_tb": host.down_price * 1024,
        "internet_up_cost_per_tb": host.up_price * 1024,
        "is_bid": False,
        "logo": "/static/logos/vastai_small2.png",
        "machine_id": host.machine_id,
        "mobo_name": host.board,
        "os_version": host.os_version,
        "pci_gen": host.pci_gen,
        "pcie_bw": host.pcie_bw,
        "public_ipaddr": host.public_ip,
        "reliability2": host.reliability,
        "sla_r_claim": None,
        "sla_sigma_x": None,
        "static_ip": host.is_static_ip,
        "storage_cost": host.storage_price,
        "target_reliability": 0.0,
        "time_remaining": "",
        "time_remaining_isbid": "",
        "verification": host.verification,
        "webpage": None,
    }


def fixed_columns(slice_: Slice) -> dict[str, Any]:
    """Return the columns of an offer that never change."""
    host, gpus = slice_.host, slice_.num_gpus
    bundle = f"{host.gpu.name}/{gpus}/{host.ask_per_gpu}/{host.geolocation}/{host.cpu_name}"
    return {
        **host_columns(slice_),
        "id": slice_.offer_id,
        "ask_contract_id": slice_.offer_id,
        "bundle_id": stable_number(bundle),
        "bundled_results": None,
        "cluster_id": None,
        "cpu_ghz": host.cpu_ghz,
        "discount_rate": 0.0,
        "discounted_hourly": 0.0,
        "disk_space": host.disk_gb * slice_.share if gpus else host.disk_gb,
        "driver_vers": filter_grammar.driver_number(host.driver),
        "expected_reliability": host.reliability,
        "geolocode": stable_number(host.geolocation),
        "gpu_ids": [host.first_gpu_id + gpu for gpu in slice_.gpus],
        "gpu_max_power": host.gpu.max_power,
        "gpu_max_temp": 90.0,
        "gpu_total_ram": host.gpu.vram_mb * gpus,
        "hosting_type": None if host.is_datacenter is None else int(host.is_datacenter),
        "hostname": None,
        "is_vm_deverified": False,
        "reliability": host.reliability,
        "reliability_mult": host.reliability**8,
        "resource_type": "gpu" if gpus else "disk",
        "rn": 1,
        "start_date": host.listed_since,
        "vericode": int(host.verification == "verified"),
        "verified": host.verification == "verified" if gpus else None,
        "vms_enabled": False,
    }


MOVING_COLUMNS = frozenset(
    {
        "dph_base",
        "dph_total",
        "dph_total_adj",
        "discounted_dph_total",
        "dlperf_per_dphtotal",
        "flops_per_dphtotal",
        "score",
        "min_bid",
        "storage_total_cost",
        "duration",
        "rentable",
        "rented",
    }
)
