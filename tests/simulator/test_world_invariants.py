"""Whatever is done to the market, no GPU has two holders, no dollar is lost, nothing is charged that should not be."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from agent.simulator import climate_files
from agent.simulator.instances.container_state import Container
from agent.simulator.market_model import Refusal
from agent.simulator.vast.model import Contract, RentTerms
from agent.simulator.vast.world import World
from tests.support import quiet

GRANTED = 3.0


class MarketMachine(RuleBasedStateMachine):
    """Do anything to a small market with rivals, outages and spikes of its own."""

    market: World
    granted: float

    @initialize(
        name=st.sampled_from(["recorded", "bidding_war", "price_spike", "host_death"]), seed=st.integers(0, 10_000)
    )
    def open(self, name: str, seed: int) -> None:
        self.market = World(climate_files.named(name), seed=seed, start=quiet.START, hosts=12, credit=GRANTED)
        self.granted = GRANTED

    def any_contract(self, which: int) -> Contract | None:
        contracts = self.market.live_contracts()
        return contracts[which % len(contracts)] if contracts else None

    @rule(which=st.integers(0, 99), over=st.sampled_from([None, 0.5, 1.0, 1.2, 3.0]), disk=st.sampled_from([8, 40]))
    def create(self, which: int, over: float | None, disk: int) -> None:
        slices = list(self.market.slices.values())
        slice_ = slices[which % len(slices)]
        floor = self.market.true_floor(slice_)
        bid = None if over is None else max((floor or 0.3) * over, 0.001)
        try:
            contract = self.market.create(slice_.offer_id, RentTerms(disk, "pytorch/pytorch"), bid=bid)
        except Refusal:
            return
        assert contract.holds_gpu is not contract.is_underbid
        assert contract.holds_gpu is (bid is None or (floor is not None and bid >= floor))

    @rule(seconds=st.sampled_from([1, 20, 300, 3_600, 40_000]))
    def wait(self, seconds: int) -> None:
        self.market.advance_to(self.market.now + seconds)

    @rule(which=st.integers(0, 9), call=st.sampled_from(["start", "stop", "destroy", "reboot", "recycle"]))
    def call(self, which: int, call: str) -> None:
        contract = self.any_contract(which)
        if contract is not None:
            try:
                getattr(self.market, call)(contract.contract_id)
            except Refusal as refusal:
                assert refusal.code in {Refusal.INSUFFICIENT_CREDIT, Refusal.EXPIRED}  # noqa: PT017 - of a rule

    @rule(which=st.integers(0, 9), price=st.one_of(st.none(), st.floats(0.001, 3.0)))
    def rebid(self, which: int, price: float | None) -> None:
        contract = self.any_contract(which)
        if contract is not None and contract.is_bid:
            self.market.change_bid(contract.contract_id, price)

    @rule(which=st.integers(0, 9), price=st.one_of(st.none(), st.floats(0.01, 3.0)), gpus=st.integers(1, 8))
    def compete(self, which: int, price: float | None, gpus: int) -> None:
        contract = self.any_contract(which)
        if contract is not None:
            gpus = min(gpus, contract.host.gpu_count)
            self.market.add_rival(contract.slice.machine_id, gpus, price, on_demand=price is None)

    @rule()
    def leave(self) -> None:
        for rival_id in list(self.market.rivals):
            self.market.remove_rival(rival_id)

    @rule(which=st.integers(0, 9), minutes=st.one_of(st.none(), st.integers(1, 200)), is_final=st.booleans())
    def strike(self, which: int, minutes: int | None, is_final: bool) -> None:
        contract = self.any_contract(which)
        if contract is not None:
            machine_id = contract.slice.machine_id
            if minutes is None and is_final:
                self.market.set_host_gone(machine_id)
            else:
                self.market.set_host_offline(machine_id, self.market.now + 60.0 * (minutes or 5))

    @rule(dollars=st.floats(0.0, 5.0))
    def pay_in(self, dollars: float) -> None:
        self.market.set_credit(self.market.credit + dollars)
        self.granted += dollars

    @invariant()
    def no_gpu_has_two_holders(self) -> None:
        held: set[tuple[int, int]] = set()
        for contract in self.market.live_contracts():
            if contract.holds_gpu:
                gpus = {(contract.slice.machine_id, gpu) for gpu in contract.slice.gpus}
                assert held.isdisjoint(gpus)
                held |= gpus
        for yard in self.market.attended():
            for rival in yard.rivals:
                if rival.is_running:
                    gpus = {(rival.slice.machine_id, gpu) for gpu in rival.slice.gpus}
                    assert held.isdisjoint(gpus)
                    held |= gpus

    @invariant()
    def every_dollar_is_accounted_for(self) -> None:
        total = self.market.charged_total()
        assert self.market.credit == pytest.approx(self.granted - total, abs=1e-9)
        assert sum(sum(one.charged.values()) for one in self.market.contracts.values()) == pytest.approx(total)
        rows = self.market.charges(0, self.market.now)
        assert sum(row.amount for row in rows) == pytest.approx(total, abs=1e-9)

    @invariant()
    def what_is_stopped_silent_or_gone_costs_no_gpu(self) -> None:
        billing = set(self.market.billing_now())
        for contract in self.market.contracts.values():
            is_live = contract.ended is None and not contract.is_offline
            assert (contract.contract_id in billing) is is_live
            if contract.container is Container.RUNNING:
                assert contract.holds_gpu
            if contract.ended is not None:
                assert not contract.holds_gpu


MarketMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestMarket = MarketMachine.TestCase
