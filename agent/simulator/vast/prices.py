"""The price of a slice now, from its host's price walk and the climate's spikes."""

from agent.simulator import recorded_figures
from agent.simulator.climate import Climate
from agent.simulator.vast.model import Host, Slice


class Prices:
    """Every price of the market at a time."""

    def __init__(self, climate: Climate, start: float) -> None:
        """Compute when the climate's spikes begin and end."""
        self._spikes = [
            (start + spike.at_seconds, start + spike.at_seconds + spike.seconds, spike.factor, frozenset(spike.gpus))
            for spike in climate.spikes
        ]
        self.turns = sorted({time for spike in self._spikes for time in spike[:2]})

    def ask(self, slice_: Slice, now: float) -> float:
        """Return the on-demand price of the slice, $/h."""
        return len(slice_.gpus) * self._now(slice_.host, slice_.host.ask_per_gpu, now)

    def floor(self, slice_: Slice, now: float) -> float:
        """Return the host's floor for the slice, $/h, whoever holds it."""
        return len(slice_.gpus) * self._now(slice_.host, slice_.host.floor_per_gpu, now)

    def _now(self, host: Host, price: float, now: float) -> float:
        factor = host.price_factor * self._spike(host, now)
        if factor == 1.0:
            return price
        # hosts name their prices in tenths of a cent; the market's fee comes on top
        return max(round(price * factor / recorded_figures.FEE, 3), 0.001) * recorded_figures.FEE

    def _spike(self, host: Host, now: float) -> float:
        factor = 1.0
        for begin, end, times, names in self._spikes:
            if begin <= now < end and (not names or host.gpu.name in names):
                factor *= times
        return factor
