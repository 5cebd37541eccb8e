"""Real processes on Mithril's machines: the startup script's container, a preemption, files that stay."""

import dataclasses
import shlex
import uuid
from pathlib import Path

from tests.support import counter
from tests.support.auctions import running_auctions
from tests.support.market import STILL
from tests.support.programs import until


async def test_a_container_runs_until_the_notice_is_over_and_goes_on_with_its_files(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    words = shlex.join(["ubuntu:22.04", *counter.command(mark)[1:]])
    script = f"#!/bin/bash\ndocker run --detach --entrypoint {shlex.quote(counter.command(mark)[0])} {words}\n"
    real = dataclasses.replace(STILL, processes=True)
    async with running_auctions(real, registry=counter.Registry(tmp_path)) as auctions:
        fid = await auctions.placed(launch_specification={"volumes": [], "ssh_keys": [], "startup_script": script})
        await auctions.advance(600)
        disk = tmp_path / f"mithril-{fid}"
        await until(lambda: counter.counted(disk), "a count on the boot disk")
        rival = {"pool": "auc_simulated00001", "quantity": 26, "bid": 99.0}
        number = (await auctions.control("POST", "/rivals", rival)).body["id"]
        await auctions.advance(419)
        assert (await auctions.show(fid))["status"] == "Preempting"
        assert counter.alive(mark)
        await auctions.advance(1)
        assert counter.alive(mark) == []
        count = counter.counted(disk)
        await auctions.control("DELETE", f"/rivals/{number}")
        await auctions.advance(600)
        await until(lambda: counter.counted(disk) > count, "a higher count")
        await auctions.call("DELETE", f"/v2/spot/bids/{fid}")
        assert counter.alive(mark) == []
        assert not disk.exists()
