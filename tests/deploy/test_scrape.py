"""The shipped scrape configuration in a real Prometheus that asks the daemon by a host name, not by its address."""

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml  # type: ignore[import-untyped]

from tests.support import ports
from tests.support.programs import until
from tests.support.scene import work
from tests.web.page import Served, served

SHIPPED = Path(__file__).parents[2] / "deploy/prometheus/scrape.yml"
NAME = "gpu-box.example"
ADDRESS = "127.0.0.1:9477"

pytestmark = pytest.mark.skipif(shutil.which("prometheus") is None, reason="Debian's prometheus is not here")


def configured(page: Served, forwarder: int) -> str:
    """Return the shipped file, the commented job too, with the address as NAME, which needs no name server."""
    lines = SHIPPED.read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if "# - job_name" in line)
    lines[start:] = [line.replace("  # ", "  ", 1) for line in lines[start:]]
    told = yaml.safe_load("\n".join(lines).replace(ADDRESS, f"{NAME}:{page.place[1]}"))
    daemon, services = told["scrape_configs"]
    way = {"proxy_url": f"http://127.0.0.1:{forwarder}"}
    daemon |= way | {"scrape_interval": "1s", "scrape_timeout": "1s"}
    services["http_sd_configs"][0] |= way
    del told["rule_files"]
    return str(yaml.safe_dump(told))


@contextlib.asynccontextmanager
async def forwarder(page: Served) -> AsyncIterator[int]:
    """Return the shipped file, the commented job too, for NAME in place of the address; no name server is asked."""
    prefix = f"http://{NAME}:{page.place[1]}".encode()

    async def led(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(*page.place)
        way = asyncio.create_task(_copied(reader, back, lambda raw: raw.replace(b" " + prefix, b" ", 1)))
        await _copied(there, writer, lambda raw: raw)
        way.cancel()
        back.close()

    server = await asyncio.start_server(led, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, change: Callable[[bytes], bytes]) -> None:
    with contextlib.suppress(ConnectionError):
        while raw := await reader.read(65_536):
            writer.write(change(raw))
            await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def prometheus(folder: Path, config: str) -> AsyncIterator[Callable[[str], Any]]:
    """Run a real Prometheus; give what reads its API."""
    (folder / "prometheus.yml").write_text(config)
    address = f"127.0.0.1:{ports.free()}"
    words = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            "prometheus", *words, f"--web.listen-address={address}", stdout=log, stderr=log
        )
        try:
            async with aiohttp.ClientSession() as link:

                async def read(path: str) -> Any:
                    with contextlib.suppress(aiohttp.ClientConnectionError):
                        async with link.get(f"http://{address}/api/v1/{path}") as answer:
                            return json.loads(await answer.text()).get("data") if answer.status == 200 else None
                    return None

                yield read
        finally:
            process.terminate()
            await process.wait()


async def targets(read: Callable[[str], Any], job: str) -> list[dict[str, Any]]:
    """Return the targets of a job that were scraped, or at least found."""
    told = await read("targets?state=active") or {"activeTargets": []}
    return [each for each in told["activeTargets"] if each["labels"]["job"] == job]


async def test_metrics_and_services_are_had_by_a_name_that_the_configuration_lists(tmp_path: Path) -> None:
    workloads = (work(ports=(8000,)),)
    async with (
        served(tmp_path, names=(NAME,), workloads=workloads) as page,
        forwarder(page) as port,
        prometheus(tmp_path, configured(page, port)) as read,
    ):
        await page.world.cycle(minutes=2)
        (found,) = await until(lambda: targets(read, "gpubid_services"), "the services")
        assert found["labels"]["workload"] == "train"
        assert found["labels"]["instance"] == json.loads((await page.get("/services"))[1])[0]["targets"][0]

        async def is_up() -> bool:
            return [each["health"] for each in await targets(read, "gpubid")] == ["up"]

        await until(is_up, "a scrape")
        (scraped,) = await targets(read, "gpubid")
        assert scraped["scrapeUrl"] == f"http://{NAME}:{page.place[1]}/metrics"
        (sample,) = (await read("query?query=process_resident_memory_bytes"))["result"]
        assert sample["metric"]["instance"] == f"{NAME}:{page.place[1]}"


async def test_a_name_that_is_not_listed_is_refused_and_prometheus_says_so(tmp_path: Path) -> None:
    async with (
        served(tmp_path) as page,
        forwarder(page) as port,
        prometheus(tmp_path, configured(page, port)) as read,
    ):

        async def is_down() -> bool:
            return [each["health"] for each in await targets(read, "gpubid")] == ["down"]

        await until(is_down, "a refused scrape")
        (scraped,) = await targets(read, "gpubid")
        assert "421" in scraped["lastError"]
        assert await targets(read, "gpubid_services") == []
