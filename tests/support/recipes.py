"""The handbook's training programs as real processes, on the PyTorch of an environment of its own (`make frameworks`).

A driver runs them unchanged: it counts their steps, waits a little before each, writes each down where WITNESS names a
file, and kills the guard and itself where KILL says so.
"""

import dataclasses
import json
import os
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy/handbook/recipes"
PYTHON = ROOT / ".venv-torch/bin/python"
IS_HERE = (ROOT / ".venv-torch/.installed").exists()
WHY_NOT = "PyTorch is not here: `make frameworks` installs it"
DATA = "/data/ckpt"
"""The folder of the recipes' checkpoints. In a test each container has a separate folder."""
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
"""Variables for one thread each, and for no search on the network."""
_DRIVER = """
import os, runpy, signal, sys, time
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

kind, _, count = os.environ.get("KILL", "").partition(":")
left = int(count or 0)
witness = open(os.environ["WITNESS"], "a", 1) if "WITNESS" in os.environ else None
pause, sys.argv = float(sys.argv[1]), sys.argv[2:]
folder = sys.argv[1]
done = None

def strike(what):
    global left
    if what == kind:
        left -= 1
        if left == 0:
            os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)

def step(*_):
    global done
    if done is None:
        done = int(open(os.environ["GPUBID_PROGRESS"]).read()) if "GPUBID_PROGRESS" in os.environ else 0
    if witness is not None:
        print(done, time.monotonic(), file=witness)
    done += 1
    strike("step")
    time.sleep(pause)

def touch(event, given):
    if event in ("open", "os.rename", "os.mkdir", "os.remove") and str(given[0]).startswith(folder):
        strike("write")

save = torch.save
def saved(*given, **more):
    strike("write")
    save(*given, **more)
    strike("write")

torch.save = saved
register_optimizer_step_pre_hook(step)
sys.addaudithook(touch)
runpy.run_path(sys.argv[0], run_name="__main__")
"""
_DIGEST = """
import hashlib, sys, torch
def fed(value):
    if isinstance(value, torch.Tensor):
        digest.update(repr((value.dtype, value.shape)).encode() + value.numpy().tobytes())
    elif isinstance(value, dict):
        for key in value:
            digest.update(repr(key).encode())
            fed(value[key])
    elif isinstance(value, (list, tuple)):
        for each in value:
            fed(each)
    else:
        digest.update(repr(value).encode())
digest = hashlib.sha256()
fed(torch.load(sys.argv[1], weights_only=True))
print(digest.hexdigest())
"""


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A program of the handbook with the table of its workload."""

    name: str

    @property
    def program(self) -> Path:
        return FOLDER / f"{self.name}.py"

    @property
    def table(self) -> dict[str, Any]:
        """Return the workload's table, as the page prints it."""
        (table,) = tomllib.loads((FOLDER / f"{self.name}.toml").read_text())["workloads"].values()
        return dict(table)

    def command(self, folder: Path | str, steps: int, pause_seconds: float = 0.0) -> list[str]:
        """Return the table's command, for a folder and a number of steps, in the environment that has PyTorch."""
        words = shlex.split(self.table["command"])
        assert words[:3] == ["python3", "/app/train.py", DATA]
        return [str(PYTHON), "-c", _DRIVER, str(pause_seconds), str(self.program), str(folder), str(steps)]

    def settings(self, folder: Path | str) -> dict[str, Any]:
        """Return the daemon's settings for the guard of the table, for a folder."""
        guard = self.table["guard"]
        return {
            "paths": [path.replace(DATA, str(folder)) for path in guard["paths"]],
            "complete": guard["complete"],
            "ask": guard["ask"],
        }

    def run(self, folder: Path, steps: int) -> None:
        """Run it to its end, alone and without an interruption."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **ENVIRONMENT}
        subprocess.run(self.command(folder, steps), env=environment, check=True, capture_output=True)


LOOP, TRAINER = Recipe("pytorch_loop"), Recipe("hugging_face_trainer")


def state(folder: Path) -> str:
    """Return the digest of everything that the loop's checkpoint in a folder holds."""
    words = [str(PYTHON), "-c", _DIGEST, str(folder / "checkpoint.pt")]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def losses(folder: Path, steps: int) -> list[float]:
    """Return the loss of each step from the Trainer's last checkpoint in a folder."""
    told = json.loads((folder / f"checkpoint-{steps}" / "trainer_state.json").read_text())
    logged = [line for line in told["log_history"] if "loss" in line]
    assert [line["step"] for line in logged] == list(range(1, steps + 1))
    return [float(line["loss"]) for line in logged]
