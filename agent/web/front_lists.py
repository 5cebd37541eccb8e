"""The leases behind a front as JSON, for proxies that ask for their list over HTTP, such as Traefik."""

from aiohttp import web

from agent.config.front_settings import Format
from agent.front import proxy_formats
from agent.front.served_leases import served_leases
from agent.web.daemon_port import Orders
from agent.web.request_checks import middlewares

PATH = "/front/{name}.{form}.json"


def route(app: Orders) -> web.RouteDef:
    """Return the route. A name that is no front, or an unknown form, is a 404."""

    async def answered(request: web.Request) -> web.Response:
        front = next((each for each in app.config.fronts if each.name == request.match_info["name"]), None)
        work = next((each for each in app.rules.workloads if front is not None and each.name == front.workload), None)
        form = request.match_info["form"]
        if front is None or work is None or form not in set(Format):
            raise web.HTTPNotFound(text="there is no such front; write /front/NAME.traefik.json or .caddy.json\n")
        local = {each.name for each in app.config.markets if each.is_on_this_machine}
        leases = app.ledger.recollection(app.clock.now()).leases
        found = served_leases(leases, work, front.port, may_be_local=local)
        content = proxy_formats.written(front.name, found, Format(form))
        return web.Response(text=content, content_type="application/json")

    return web.get(PATH, middlewares.Turn().taken(answered))
