"""The web server of a daemon: every route that it serves, behind one guard."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry

from agent.telemetry.health import Health
from agent.web import discovery
from agent.web.deliveries import Deliveries
from agent.web.operator import Orders
from agent.web.pages import Pages
from agent.web.refusals import Refusals
from agent.web.server import Server
from agent.web.visitors import Visitors


def site(
    app: Orders,
    registry: CollectorRegistry,
    health: Health,
    wake: Callable[[], None],
    *,
    token: Callable[[], str] | None = None,
    webhook_secret: Callable[[], str] | None = None,
) -> Server:
    """Return the server of `app`; `wake` starts a cycle, without `webhook_secret` no delivery is taken."""
    listen, monotonic = app.config.listen, app.clock.monotonic
    refusals = Refusals(monotonic)
    routes = [*Pages(app, Visitors(token, monotonic, refusals), wake).routes(), discovery.route(app)]
    if webhook_secret is not None:
        routes.append(Deliveries(webhook_secret, app.clock, wake, refusals).route())
    return Server(listen.host, listen.port, registry, health, routes, names=listen.names, refusals=refusals)
