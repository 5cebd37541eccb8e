"""The disks of real processes: emptied and removed without leaving them, whatever the workload did to its folders."""

import os
import shutil
from pathlib import Path

import pytest

from agent.simulator.processes.container_process import ContainerProcess, Start
from agent.simulator.processes.process_registry import ProcessRegistry
from agent.simulator.simulated_clock import ScaledClock
from tests.support import counter
from tests.support.programs import until


def made_by(registry: ProcessRegistry, name: str = "one") -> ContainerProcess:
    return registry.made(name, (), has_volume=True)


@pytest.fixture
def registry(tmp_path: Path) -> ProcessRegistry:
    return ProcessRegistry(ScaledClock(), folder=tmp_path / "disks")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Return a folder of somebody else with a file in it."""
    made = tmp_path / "outside"
    (made / "root").mkdir(parents=True)
    (made / "kept").touch()
    (made / "root" / "kept").touch()
    return made


def is_whole(outside: Path) -> bool:
    return (outside / "kept").exists() and (outside / "root" / "kept").exists()


def test_a_shared_volume_outlives_its_instances(registry: ProcessRegistry) -> None:
    first = registry.made("one", (), has_volume=False, shared="volume-nv1")
    (first.place / "kept").touch()
    first.wipe()
    first.remove()
    second = registry.made("two", (), has_volume=False, shared="volume-nv1")
    assert (second.place / "kept").exists()
    assert list(second.home.iterdir()) == []
    assert not (registry.made("three", (), has_volume=True).place / "kept").exists()
    registry.close()


@pytest.mark.parametrize("part", ["home", "folder"])
async def test_a_wipe_does_not_follow_a_link_in_the_place_of_a_folder(
    registry: ProcessRegistry, outside: Path, part: str
) -> None:
    made = made_by(registry)
    replaced = made.home if part == "home" else made.home.parent
    shutil.rmtree(replaced)
    replaced.symlink_to(outside)
    made.wipe()
    assert is_whole(outside)
    assert not replaced.is_symlink()
    assert list(made.home.iterdir()) == []
    replaced.rename(replaced.with_name("before"))
    replaced.symlink_to(outside)
    made.remove()
    assert is_whole(outside)
    registry.close()


@pytest.mark.parametrize("loss", ["removed", "a file", "closed"])
def test_a_wipe_makes_a_home_anew_that_is_no_open_folder(registry: ProcessRegistry, loss: str) -> None:
    made = made_by(registry)
    (made.place / "kept").touch()
    (made.home / "file").touch()
    if loss == "closed":
        made.home.chmod(0)
    else:
        shutil.rmtree(made.home)
        if loss == "a file":
            made.home.touch()
    made.wipe()
    assert list(made.home.iterdir()) == []
    assert made.home.stat().st_mode & 0o700 == 0o700
    assert (made.place / "kept").exists()
    registry.close()


async def test_a_start_has_its_folders_again_and_no_link_in_their_place(
    registry: ProcessRegistry, outside: Path
) -> None:
    made = made_by(registry)
    shutil.rmtree(made.home)
    shutil.rmtree(made.place)
    made.place.symlink_to(outside)
    registry.start(made, Start(script='touch here "$HOME/there"'), port_names=())
    try:
        await until((made.home / "there").exists, "the end of its script")
        assert (made.place / "here").exists()
        assert not made.place.is_symlink()
        assert not (outside / "here").exists()
    finally:
        registry.close()


async def test_what_cannot_be_removed_stops_nothing_else(
    registry: ProcessRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a file of another user, or one that may not change, in the first disk."""
    first, second = made_by(registry, "one"), made_by(registry, "two")
    for each in (first, second):
        (each.home / "file").touch()
        (each.home / "other").touch()
    stuck = first.home / "file"
    monkeypatch.setattr(os, "unlink", refusing(stuck, os.unlink))
    first.wipe()
    assert list(first.home.iterdir()) == [stuck]
    assert first.printed()[1][-1][1] == f"the disk is not empty: {stuck}"
    registry.start(second, Start(counter.command("word")), port_names=())
    registry.close()
    assert not second.is_alive
    assert not second.home.exists()
    assert first.printed()[1][-1][1] == f"the disk is not removed: {first.home.parent}"


def refusing(stuck: Path, unlink: object) -> object:
    """Return an unlink that does not remove one file, by its path or beside its folder's descriptor."""

    def unlink_or_refuse(path: str | Path, *, dir_fd: int | None = None) -> None:
        if Path(path).name == stuck.name and "one" in str(
            Path(f"/proc/self/fd/{dir_fd}").resolve() if dir_fd else path
        ):
            raise PermissionError(path)
        unlink(path, dir_fd=dir_fd)  # type: ignore[operator]

    return unlink_or_refuse


def test_two_registries_share_a_folder_and_no_disk(tmp_path: Path) -> None:
    one, two = (ProcessRegistry(ScaledClock(), below=tmp_path / "disks") for _ in range(2))
    (made_by(one).home / "file").touch()
    (made_by(two).home / "file").touch()
    one.close()
    assert (made_by(two).home / "file").exists()
    two.close()
    assert list((tmp_path / "disks").iterdir()) == []
