"""The program in this process, for an order without a daemon, on the markets whose keys can be read.

A missing key of one market must not keep a person from ending what is on the others.
"""

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent.cli.ordering import named_markets
from agent.cli.shared import session
from agent.domain.work.order import Order

if TYPE_CHECKING:
    from agent.app import App
    from agent.config.settings import Config
    from agent.decide.strategy import Tuned


@dataclass(frozen=True, slots=True)
class OwnProgram:
    """The program, and why nothing can be sent to some markets, by name."""

    app: "App"
    unreached: Mapping[str, str]

    def unsent(self, order: Order) -> list[str]:
        """Return the leases that an order is to end on markets that cannot be reached, each with its market.

        Raises:
            OrderError: the target names nothing.
        """
        from agent.act.orders import operator_orders, order_grounds

        if order.verb not in operator_orders.ENDING or not self.unreached:
            return []
        _, leases = order_grounds.named(order.target, self.app.grounds())
        return [f"{lease.lease_id} at {lease.market}" for lease in leases if lease.market in self.unreached]


@contextlib.asynccontextmanager
async def opened(config: "Config", tuned: "Mapping[str, Tuned]") -> "AsyncIterator[OwnProgram]":
    """Open the program on the markets that can be reached; print which cannot, and why.

    Raises:
        CredentialError: no market has a key that can be used.
        LedgerError: as `App.open`.
    """
    from agent.app import App

    reach = named_markets.reach(config.markets)
    async with session.outside_of_markets(replace(config, markets=reach.markets)) as outside:
        app = await App.open(replace(config, markets=reach.markets), tuned, outside)
        try:
            unreached = {**_removed(app), **reach.unlisted}
            for name, why in unreached.items():
                session.warn(f"{name} is not looked at, so instances there may still bill: {why}")
            yield OwnProgram(app, unreached)
        finally:
            await app.close()


def _removed(app: "App") -> dict[str, str]:
    """Return the markets that the configuration lacks and on which leases are open."""
    leases = app.billing()[0]
    names = sorted({lease.market for lease in leases} - app.markets.keys())
    return {name: f"[markets.{name}] is not in the configuration; write it again" for name in names}
