"""Instance records in the vendor's words: a contract as its renter sees it.

1. Outbid, displaced, stopped by hand, out of credit and expired look exactly alike.
2. dph_base is the price of the GPUs while running: for a bid the bid, capped at the ask. The bid itself and the offer
   have no key, and min_bid stays the host's own floor.
3. start_date and extra_env are always present, `ports` only while running. `duration` is the time until end_date.
"""

from typing import Any

from agent.simulator.instances import open_ports, program
from agent.simulator.instances.container_state import Container
from agent.simulator.vast.http import offer_rows
from agent.simulator.vast.model import Contract
from agent.simulator.vast.world import World

_STATUS = {
    Container.NONE: None,
    Container.LOADING: "loading",
    Container.CREATED: "created",
    Container.RUNNING: "running",
    Container.EXITED: "exited",
    Container.REBOOTING: "rebooting",
    Container.RECYCLING: "recycling",
}
# Columns that the vendor computes. Its list therefore neither filters nor sorts by them.
COMPUTED = frozenset(
    {
        "dph_base",
        "dph_total",
        "num_gpus",
        "dlperf_per_dphtotal",
        "flops_per_dphtotal",
        "duration",
        "uptime_mins",
        "storage_total_cost",
        "search",
        "instance",
        "score",
        "vram_costperhour",
        "ports",
        "volume_info",
        "gpu_frac",
        "gpu_totalram",
        "country_code",
        "template_name",
        "credit_balance",
        "time_remaining",
        "time_remaining_isbid",
    }
)


class Records:
    """Makes records for the contracts of one world."""

    def __init__(self, world: World) -> None:
        """Start empty. The columns of a contract that never change are kept once they are made."""
        self._world = world
        self.doors = open_ports.Doors()
        self._fixed: dict[int, dict[str, Any]] = {}

    def record(self, contract: Contract) -> dict[str, Any]:
        """Return the full record as it is now."""
        fixed = self._fixed.get(contract.contract_id)
        if fixed is None:
            fixed = self._fixed[contract.contract_id] = _fixed_columns(contract)
        row = {**fixed, **self._money(contract, fixed), **self._state(contract)}
        if contract.container is Container.RUNNING and contract.holds_gpu and not contract.is_offline:
            row["ports"] = {"22/tcp": [{"HostIp": "0.0.0.0", "HostPort": str(_port(contract) + 1)}]}  # noqa: S104
            opened = self.doors.ports(contract) if contract.env else {}
            if opened:
                row["public_ipaddr"] = open_ports.ADDRESS
                row["ports"] |= {
                    f"{inside}/tcp": [{"HostIp": "0.0.0.0", "HostPort": str(outside)}]  # noqa: S104
                    for inside, outside in opened.items()
                }
        return row

    def _money(self, contract: Contract, fixed: dict[str, Any]) -> dict[str, Any]:
        world = self._world
        paid, disk = world.gpu_rate(contract), world.disk_rate(contract)
        base = paid / (1.0 - contract.discount)
        total = base + disk
        value = (fixed["dlperf"] or 0.0) / total if total else 0.0
        is_charged = contract.holds_gpu and contract.container is Container.RUNNING
        return {
            "dph_base": base,
            "dph_total": total,
            "storage_total_cost": disk,
            "search": offer_rows.breakdown(base, disk, base - paid),
            "instance": offer_rows.breakdown(base if is_charged else 0, disk, base - paid if is_charged else 0),
            "min_bid": world.host_floor(contract.slice),
            "dlperf_per_dphtotal": value,
            "flops_per_dphtotal": (fixed["total_flops"] or 0.0) / total if total else 0.0,
            "score": value * contract.host.reliability**4,
            "vram_costperhour": total / (fixed["gpu_totalram"] or 1),
            "inet_down_billed": contract.down_gb * 1024 if contract.down_gb else None,
            "inet_up_billed": contract.up_gb * 1024 if contract.up_gb else None,
            "credit_balance": world.landlord.left_of_deposit(contract) or None,
            "credit_discount": contract.discount or None,
            "end_date": contract.end_time,
        }

    def _state(self, contract: Contract) -> dict[str, Any]:
        world = self._world
        held = "running" if contract.holds_gpu else "stopped"
        is_running = contract.container is Container.RUNNING and contract.holds_gpu
        is_up = contract.first_started is not None
        return {
            "actual_status": actual_status(contract),
            "cur_state": held,
            "next_state": held,
            "intended_status": "running" if contract.is_intended else "stopped",
            "status_msg": status_message(contract),
            "label": contract.label,
            "duration": contract.end_time - world.now,
            "uptime_mins": world.running_seconds(contract) / 60.0 if is_running else None,
            "gpu_util": program.gpu_use(contract, world.now) if is_running else None,
            "gpu_temp": 61.0 if is_running else None,
            "cpu_util": 1.5 if is_running else 0.0,
            "mem_usage": 4.0 if is_running else None,
            "mem_limit": contract.host.ram_mb * contract.slice.share / 1024.0 if is_running else None,
            "vmem_usage": 0.5 if is_running else None,
            "disk_usage": contract.image_gb * contract.pulled_share if is_up else -1,
            "disk_util": contract.image_gb / contract.disk_gb if is_up else -1,
            "ssh_host": f"ssh{contract.contract_id % 9 + 1}.vast.ai" if is_up else None,
            "ssh_idx": str(contract.contract_id % 9 + 1) if is_up else None,
            "ssh_port": _port(contract) if is_up else None,
        }


def actual_status(contract: Contract) -> str | None:
    """Return the container's state as the host reports it."""
    if contract.is_unknown:
        return "unknown"
    if contract.is_offline:
        return "offline"
    return _STATUS[contract.container]


def status_message(contract: Contract) -> str | None:
    """Return the last message of the host's daemon: "success, running ..." stays after the GPUs are lost."""
    if contract.pull_error is not None:
        return contract.pull_error
    if contract.first_started is not None:
        return f"success, running {_qualified(contract.image).replace(':', '_')}/{contract.runtype.split()[0]}"
    if contract.container is not Container.LOADING:
        return None
    if contract.is_ready:
        return f"Successfully loaded {_qualified(contract.image)}"
    return f"#7 Pulling {_qualified(contract.image)}: {contract.pulled_share:.0%}"


def _qualified(image: str) -> str:
    head = image.split("/", 1)[0]
    return image if "/" in image and ("." in head or ":" in head) else f"docker.io/{image}"


def _port(contract: Contract) -> int:
    return 10_000 + contract.contract_id % 25_000 * 2


def _fixed_columns(contract: Contract) -> dict[str, Any]:
    columns = offer_rows.host_columns(contract.slice)
    geolocation = contract.host.geolocation
    return {
        **columns,
        "id": contract.contract_id,
        "bundle_id": None,
        "client_run_time": 1.1,
        "country_code": geolocation.rsplit(", ", 1)[-1] or None,
        "direct_port_end": -1,
        "direct_port_start": -1,
        "disk_space": contract.disk_gb,
        "extra_env": [[name, value] for name, value in contract.env.items()],
        "gpu_totalram": contract.host.gpu.vram_mb * contract.slice.num_gpus,
        "host_run_time": 1.0,
        "hosting_type": None,
        "image_args": list(contract.args),
        "image_runtype": contract.runtype,
        "image_uuid": contract.image,
        "is_bid": contract.is_bid,
        "jupyter_token": f"{offer_rows.stable_number(str(contract.contract_id)):064x}",
        "local_ipaddrs": "10.0.0.5 172.17.0.1 \n",
        "machine_dir_ssh_port": 40_100,
        "onstart": contract.onstart,
        "rentable": True,
        "start_date": contract.created,
        "template_hash_id": contract.template,
        "template_id": None,
        "template_name": None,
        "volume_info": [],
    }
