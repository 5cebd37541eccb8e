"""A plain PyTorch loop under gpubid's guard: `python3 train.py FOLDER STEPS` goes on from the checkpoint in FOLDER."""

import os
import signal
import sys
from pathlib import Path

import torch

FOLDER, STEPS = Path(sys.argv[1]), int(sys.argv[2])
CHECKPOINT = FOLDER / "checkpoint.pt"
SEED, ROWS, BATCH = 7, 512, 16
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

# The guard asks for a checkpoint by this signal; it is written after the step that runs now.
asked: list[int] = []
signal.signal(signal.SIGUSR1, lambda number, _: asked.append(number))


def save(step: int) -> None:
    """Write all that the next step depends on under a new name; a kill leaves the old checkpoint or the new one."""
    state = {
        "step": step,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "schedule": schedule.state_dict(),
        "random": torch.get_rng_state(),
        "random_cuda": torch.cuda.get_rng_state_all() if DEVICE == "cuda" else [],
    }
    new = CHECKPOINT.with_name("checkpoint.new")
    with new.open("wb") as out:
        torch.save(state, out)
        out.flush()
        os.fsync(out.fileno())
    new.replace(CHECKPOINT)


def load() -> int:
    """Take the state from the checkpoint, if there is one, and return the number of steps that are done."""
    if not CHECKPOINT.exists():
        return 0
    state = torch.load(CHECKPOINT, map_location="cpu", weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    schedule.load_state_dict(state["schedule"])
    torch.set_rng_state(state["random"])
    # Another host may have fewer GPUs.
    for number, one in enumerate(state["random_cuda"][: torch.cuda.device_count()]):
        torch.cuda.set_rng_state(one, number)
    return state["step"]


def batch(step: int) -> torch.Tensor:
    """Return the rows of a step. Their order follows from the seed and the epoch, so no loader has a place to keep."""
    epoch, place = divmod(step, ROWS // BATCH)
    order = torch.randperm(ROWS, generator=torch.Generator().manual_seed(SEED + epoch))
    return order[place * BATCH : (place + 1) * BATCH]


def report(step: int) -> None:
    """Tell the guard how far the work is: gpubid shows it, and a deadline reckons with it."""
    if "GPUBID_PROGRESS" in os.environ:
        new = Path(os.environ["GPUBID_PROGRESS"] + ".new")
        new.write_text(str(step))
        new.replace(os.environ["GPUBID_PROGRESS"])


FOLDER.mkdir(parents=True, exist_ok=True)
torch.manual_seed(SEED)
# Your own data and model go here.
inputs = torch.randn(ROWS, 8)
targets = inputs.sin().sum(dim=1, keepdim=True)
layers = [torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 1)]
model = torch.nn.Sequential(*layers).to(DEVICE)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)

first = load()
print(f"begins after step {first}", flush=True)
report(first)
for step in range(first, STEPS):
    rows = batch(step)
    loss = torch.nn.functional.mse_loss(model(inputs[rows].to(DEVICE)), targets[rows].to(DEVICE))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    report(step + 1)
    if asked:
        asked.clear()
        save(step + 1)
# The end is a checkpoint too: the guard carries it, and exit code 0 says that the work is done.
save(STEPS)
print(f"done, last loss {loss.item():.6f}" if first < STEPS else "done before", flush=True)
