"""Hugging Face's Trainer under gpubid's guard: `python3 train.py FOLDER STEPS` goes on from the newest in FOLDER."""

import os
import shutil
import signal
import sys
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed

FOLDER, STEPS = Path(sys.argv[1]), int(sys.argv[2])
SEED, ROWS, WORDS = 7, 256, 16
MARK = "whole"

# The guard asks for a checkpoint by this signal; Trainer writes it after the step that runs now.
asked: list[int] = []
signal.signal(signal.SIGUSR1, lambda number, _: asked.append(number))


class Guarded(TrainerCallback):
    """Saves when it is asked to and at the end, marks what is whole, and reports the progress."""

    def on_train_begin(self, args, state, control, **_):
        report(state.global_step)

    def on_step_end(self, args, state, control, **_):
        report(state.global_step)
        if asked or state.global_step == state.max_steps:
            asked.clear()
            control.should_save = True

    def on_save(self, args, state, control, **_):
        # Trainer writes the files of a checkpoint one after another. This one says that all are there.
        folder = FOLDER / f"checkpoint-{state.global_step}"
        for path in folder.iterdir():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        (folder / MARK).write_text("All files of this checkpoint are there.\n")


def report(step: int) -> None:
    """Tell the guard how far the work is: gpubid shows it, and a deadline reckons with it."""
    if "GPUBID_PROGRESS" in os.environ:
        new = Path(os.environ["GPUBID_PROGRESS"] + ".new")
        new.write_text(str(step))
        new.replace(os.environ["GPUBID_PROGRESS"])


def newest() -> str | None:
    """Return the folder of the newest whole checkpoint, and remove what a kill left of others.

    `resume_from_checkpoint=True` would take the newest folder, whole or not.
    """
    whole = []
    for folder in FOLDER.glob("checkpoint-*"):
        if (folder / MARK).exists():
            whole.append((int(folder.name.rpartition("-")[2]), str(folder)))
        else:
            shutil.rmtree(folder)
    return max(whole)[1] if whole else None


# Your own data and model go here.
set_seed(SEED)
rows = torch.randint(0, 64, (ROWS, WORDS), generator=torch.Generator().manual_seed(SEED))
data = [{"input_ids": row, "labels": row} for row in rows]
model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=WORDS, n_embd=16, n_layer=1, n_head=2))

arguments = TrainingArguments(
    output_dir=str(FOLDER),
    max_steps=STEPS,
    per_device_train_batch_size=8,
    learning_rate=0.01,
    seed=SEED,
    # The guard says when. It carries each checkpoint to the bucket, so the disk needs two at most.
    save_strategy="no",
    save_total_limit=2,
    # Where this is more than one step, the first mean after a resume is that of fewer steps.
    logging_steps=1,
    disable_tqdm=True,
    report_to="none",
)
trainer = Trainer(model=model, args=arguments, train_dataset=data, callbacks=[Guarded()])
begin = newest()
print(f"begins at {begin or 'step 0'}", flush=True)
trainer.train(resume_from_checkpoint=begin)
print("done", flush=True)
