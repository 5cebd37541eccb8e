"""The guard in the containers of a simulated market: losses are SIGKILL, and the work ends as if there were none."""

import json
import re
import uuid
from pathlib import Path
from typing import Any

import pytest

from agent.config import guard_archive
from agent.guard.bucket_notes import BucketNotes
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_settings import BucketPlace
from agent.guard.s3.s3_objects import S3Objects
from tests.support import s3_servers, trainer
from tests.support.container_scene import Scene, real_market
from tests.support.guarded import ROOT, Instance
from tests.support.programs import until
from tests.support.s3_servers import Store

pytestmark = pytest.mark.skipif(not s3_servers.HERE["s3rver"], reason="s3rver is not here: `make stores` installs it")


async def rented(scene: Scene, folder: Path, store: Store, lease: str, steps: int, *, manifest_exists: bool) -> int:
    """Rent a container that runs the trainer under the guard."""
    told = Instance(folder / lease).settings(
        paths=["DISK/ckpt"],
        complete="state.json",
        interval_seconds=5,
        lease=lease,
        manifest_exists=manifest_exists,
        bucket=store.place(ROOT),
    )
    words = [*trainer.command("DISK/ckpt", steps), scene.mark]
    program = [words[0], "-I", "-S", str(folder / guard_archive.NAME), "--", *words]
    script = (
        'export GPUBID_GUARD="$(printf %s "$TOLD" | sed "s#DISK#$SIM_DISK#g")" GPUBID_GUARD_HOME="$SIM_DISK/guard"\n'
        'for word; do shift; set -- "$@" "$(printf %s "$word" | sed "s#^DISK#$SIM_DISK#")"; done\nexec "$@"'
    )
    env = {"TOLD": json.dumps(told), **store.keys}
    return await scene.started(runtype="args", args=["sh", "-c", script, "-", *program], env=env)


@pytest.mark.nightly
async def test_work_that_is_lost_again_and_again_ends_with_the_same_number(tmp_path: Path) -> None:
    (tmp_path / guard_archive.NAME).write_bytes(guard_archive.packed())
    with s3_servers.running("s3rver", tmp_path / "store") as store:
        async with real_market(tmp_path / "disks") as scene:
            first = await rented(scene, tmp_path, store, "L1", trainer.ENDLESS, manifest_exists=False)
            await carried(scene, first)
            rival = await scene.outbid(first)
            await scene.resumed(first, rival)
            last = await carried(scene, first)
            assert last["restored"] is None
            await scene.market.weather("host_gone", machine_id=(await scene.market.instance(first))["machine_id"])
            assert not scene.disk(first).exists()
            saved = carried_step(store)
            second = await rented(scene, tmp_path, store, "L2", saved + 300, manifest_exists=True)
            await scene.printed(second, f"final {trainer.final(saved + 300)}")

            async def is_done() -> bool:
                return any(beat["phase"] == "done" for beat in await beats(scene, second))

            await until(is_done, "a done end")
            log = await scene.log(second)
            (began,) = [int(line[5:]) for line in log if re.fullmatch(r"from \d+", line)]
            assert 0 < saved <= began < saved + 300
            # It sleeps, so that nothing of it is started again.
            assert (await scene.market.instance(second))["actual_status"] == "running"
            await scene.resumed(second, await scene.outbid(second))
            await scene.printed(second, "gpubid-guard: the work is done, it does not start again")
            assert not any(line.startswith("from ") for line in await scene.log(second))


def carried_step(store: Store) -> int:
    place = BucketPlace(store.url, "us-east-1", s3_servers.BUCKET, ROOT, s3_servers.KEY_ID, s3_servers.SECRET, "")
    objects = S3Objects(place, GuardClock())
    try:
        return trainer.carried_step(BucketNotes(objects, ROOT))
    finally:
        objects.close()


async def beats(scene: Scene, contract: int) -> list[dict[str, Any]]:
    lines = await scene.log(contract)
    return [json.loads(line.partition(" ")[2]) for line in lines if line.startswith("gpubid-guard {")]


async def carried(scene: Scene, contract: int) -> dict[str, Any]:
    """Wait for a checkpoint of this start of the container."""

    async def found() -> dict[str, Any] | None:
        return next((beat for beat in await beats(scene, contract) if beat["upload_seconds"] is not None), None)

    return dict(await until(found, f"a checkpoint of {uuid.UUID(int=contract)}"))
