"""Services as their operators see them: ready when they answer, and only then."""

from pathlib import Path

from tests.support import stories

SERVING = (
    "slots = 1",
    'slots = 1\nports = [8000]\nready = "http"\nready_port = 8000\nready_path = "/health"\nready_within = "10m"',
)


async def test_a_page_of_an_instance_of_a_market_on_this_machine_makes_it_ready(tmp_path: Path) -> None:
    """The addresses of `gpubid simulate` are on this machine; a live market's may never be."""
    async with stories.begun(tmp_path, SERVING) as (stage, _, held):
        ready = await stage.box.until(lambda shown: shown["leases"][0]["ready_since"], "a lease that is ready")
        assert ready >= held["since"]
        assert (await stage.box.running())["lease"] == held["lease"]
