"""The web server of a daemon: all its routes, behind the same checks."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry

from agent.telemetry.health import Health
from agent.web import discovery, front_lists
from agent.web.daemon_port import Orders
from agent.web.feed import feed_routes
from agent.web.feed.live_feed import LiveFeed
from agent.web.page.pages import Pages
from agent.web.page.visitors import Visitors
from agent.web.request_checks.refusal_log import Refusals
from agent.web.web_server import Server
from agent.web.webhook_deliveries import Deliveries


def site(
    app: Orders,
    registry: CollectorRegistry,
    health: Health,
    wake: Callable[[], None],
    *,
    token: Callable[[], str] | None = None,
    webhook_secret: Callable[[], str] | None = None,
    feed: LiveFeed | None = None,
) -> Server:
    """Return the server of `app`. `wake` starts a cycle. Without `webhook_secret` every delivery is refused."""
    listen, monotonic = app.config.listen, app.clock.monotonic
    refusals = Refusals(monotonic)
    feed = feed or LiveFeed(app)
    pages = Pages(app, Visitors(token, monotonic, refusals), wake, feed)
    routes = [*pages.routes(), discovery.route(app), front_lists.route(app), *feed_routes.routes(feed)]
    if webhook_secret is not None:
        routes += Deliveries(webhook_secret, app.clock, wake, refusals).routes()
    return Server(listen.host, listen.port, registry, health, routes, names=listen.names, refusals=refusals)
