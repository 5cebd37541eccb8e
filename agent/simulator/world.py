"""The market itself: hosts, rivals, contracts and the till, moved by events and only when told.

1. Same climate, seed, start and calls, same answers: each host, contract and the account has a random stream of its own,
   so the order in which hosts are looked at changes nothing.
2. Time moves only in advance_to; a host nobody looks at costs nothing until somebody does.
3. Nothing here knows the vendor's field names or HTTP.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from agent.simulator.climate import Climate
from agent.simulator.model import Charge, Contract, Host, Notice, Rival, Slice


class World:
    """Be the market, for one account."""

    hosts: dict[int, Host]
    slices: dict[int, Slice]
    contracts: dict[int, Contract]  # by id, in order of creation; ended ones stay
    rivals: dict[int, Rival]  # those put there by hand; the market's own come and go unseen
    inbox: list[Notice]  # oldest first
    account_id: int
    climate: Climate
    now: float

    def __init__(
        self, climate: Climate, *, seed: int, start: float, hosts: int | None = None, credit: float | None = None
    ) -> None:
        """Draw the hosts and stand at `start` (epoch seconds). `hosts` and `credit` override the climate's."""
        raise NotImplementedError

    # --- time -------------------------------------------------------------------------------------------------------
    def advance_to(self, now: float) -> None:
        """Let everything due until `now` happen, in order. Going back is ignored; microseconds when nothing is due."""
        raise NotImplementedError

    # --- looking ----------------------------------------------------------------------------------------------------
    @property
    def credit(self) -> float:
        """Give what the account can still spend, to the second."""
        raise NotImplementedError

    def listed(self) -> Iterator[Slice]:
        """Yield every slice of a host that is online and not gone, in a fixed order, each host brought up to now."""
        raise NotImplementedError

    def ask(self, slice_: Slice) -> float:
        """Give the on-demand price of the whole slice, $/h as a renter pays it, without disk."""
        raise NotImplementedError

    def host_floor(self, slice_: Slice) -> float:
        """Give the host's own lowest bid for the slice, whoever holds it now."""
        raise NotImplementedError

    def true_floor(self, slice_: Slice) -> float | None:
        """Give the lowest bid that would run now, None while an on-demand renter or nobody's host stands in the way."""
        raise NotImplementedError

    def quoted_floor(self, slice_: Slice) -> float | None:
        """Give the floor that a search shows: late, and the holder's own bid while it is held (the echo trap).

        None for disk-only slices and while an on-demand renter holds any of its GPUs.
        """
        raise NotImplementedError

    def is_rentable(self, slice_: Slice) -> bool:
        """Tell whether a search shows the slice as free to rent."""
        raise NotImplementedError

    def is_rented_by_us(self, slice_: Slice) -> bool:
        """Tell whether a contract of this account holds GPUs of exactly this slice."""
        raise NotImplementedError

    def gpu_rate(self, contract: Contract) -> float:
        """Give the $/h its GPUs cost while it runs: the bid, capped at the ask, or the ask agreed at the start."""
        raise NotImplementedError

    def disk_rate(self, contract: Contract) -> float:
        """Give the $/h its disk costs."""
        raise NotImplementedError

    def running_seconds(self, contract: Contract) -> float:
        """Give how long its container has run since it last started, 0 when it does not."""
        raise NotImplementedError

    def log_lines(self, contract_id: int, tail: int = 1000) -> list[str]:
        """Give the last lines its container printed."""
        raise NotImplementedError

    # --- the renter's calls -----------------------------------------------------------------------------------------
    def create(
        self,
        offer_id: int,
        *,
        bid: float | None,
        disk_gb: float,
        image: str,
        label: str | None = None,
        onstart: str | None = None,
        env: Mapping[str, str] | None = None,
        args: tuple[str, ...] = (),
        runtype: str = "ssh",
        cancel_unavailable: bool | None = None,
        template: str | None = None,
    ) -> Contract:
        """Rent a slice, on demand without a bid. Raises Refusal; a bid below the floor makes a stopped contract.

        Such a contract has `is_underbid`, bills its disk, and runs later if the floor comes down to its bid.
        """
        raise NotImplementedError

    def contract(self, contract_id: int) -> Contract:
        """Give a contract that still exists, or raise Refusal."""
        raise NotImplementedError

    def live_contracts(self) -> list[Contract]:
        """Give the contracts that exist now, in order of creation."""
        raise NotImplementedError

    def start(self, contract_id: int) -> bool:
        """Start it; False means that its GPUs are taken and the start is queued."""
        raise NotImplementedError

    def stop(self, contract_id: int) -> None:
        """Stop it and cancel a queued start; the disk stays and bills."""
        raise NotImplementedError

    def destroy(self, contract_id: int) -> None:
        """End it and its disk."""
        raise NotImplementedError

    def change_bid(self, contract_id: int, price: float | None) -> float:
        """Set the standing bid (None: one that wins now) and give it back; takes effect at once."""
        raise NotImplementedError

    def set_label(self, contract_id: int, text: str) -> None:
        """Put another label on it."""
        raise NotImplementedError

    def reboot(self, contract_id: int) -> None:
        """Restart its container without giving up the GPUs."""
        raise NotImplementedError

    def recycle(self, contract_id: int) -> None:
        """Make its container anew from the image without giving up the GPUs."""
        raise NotImplementedError

    # --- the hand of fate -------------------------------------------------------------------------------------------
    def add_rival(self, machine_id: int, gpus: int | None = None, bid: float | None = None, *,
                  on_demand: bool = False) -> int:
        """Put a competitor on a host until it is removed: on our slice where the size fits, else on the cheapest.

        `bid` is $/h for the slice of `gpus` cards; without `gpus` it wants the whole host.
        """
        raise NotImplementedError

    def remove_rival(self, rival_id: int) -> bool:
        """Take a competitor away; False if there is none of that id."""
        raise NotImplementedError

    def set_host_offline(self, machine_id: int, until: float | None) -> None:
        """Let a host fall silent until then (None: until set_host_online). Its contracts cost nothing meanwhile."""
        raise NotImplementedError

    def set_host_online(self, machine_id: int) -> None:
        """Let a silent host answer again."""
        raise NotImplementedError

    def set_host_gone(self, machine_id: int) -> None:
        """Remove a host for good, with every contract on it."""
        raise NotImplementedError

    def set_credit(self, dollars: float) -> None:
        """Set what the account can spend; at or below nothing everything stops, above it nothing starts by itself."""
        raise NotImplementedError

    def fail_pull(self, contract_id: int | None = None, *, probability: float = 1.0) -> None:
        """Let image pulls fail, of one contract or of all, until calm_pulls. A pull that runs now fails at once."""
        raise NotImplementedError

    def stick_loading(self, contract_id: int | None = None, *, probability: float = 1.0) -> None:
        """Let image pulls hang, of one contract or of all, until calm_pulls."""
        raise NotImplementedError

    def calm_pulls(self) -> None:
        """End fail_pull and stick_loading; a pull that hangs goes on."""
        raise NotImplementedError

    def exit_container(self, contract_id: int, *, restarts_after: float | None = None) -> None:
        """Let the container end by itself while the contract keeps its GPUs."""
        raise NotImplementedError

    # --- money and truth --------------------------------------------------------------------------------------------
    def charges(self, since: float, until: float) -> list[Charge]:
        """Give what was charged on the UTC days that touch the span, by contract, day, kind and rate, oldest first."""
        raise NotImplementedError

    def charged_total(self) -> float:
        """Give every dollar charged so far."""
        raise NotImplementedError

    def billing_now(self) -> list[int]:
        """Give the ids of the contracts that cost money this second."""
        raise NotImplementedError

    def truth(self) -> dict[str, Any]:
        """Give everything as it really is, in JSON shapes: the control API's GET /truth without the calls."""
        raise NotImplementedError
