"""Looks for the daemon's sign of life. Without one for too long, it carries a last checkpoint and stops the instance.

1. Without an answer of the bucket the daemon is not called silent, and nothing is asked of the market.
2. Before each request to the market it looks at the sign of life again; a new sign cancels the request.
3. The disk is released only if every file that the work saved is in the bucket with its size.
"""

from __future__ import annotations

import threading

from agent.guard.bucket_notes import BucketNotes
from agent.guard.checkpoints.checkpoint_carrier import CheckpointCarrier
from agent.guard.deadman import deadman_switch, market_stop
from agent.guard.deadman.deadman_switch import DeadmanSwitch
from agent.guard.deadman.market_stop import MarketFailed
from agent.guard.disk_state import DiskState
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_output import GuardOutput
from agent.guard.guard_settings import DeadmanSettings, GuardSettings
from agent.guard.guard_status import GuardStatus
from agent.guard.object_store import Refused, StoreFailed, TooLarge

ALIVE = "alive.json"
VERSION = 1
LOOK_SECONDS, RETRY_SECONDS = 30.0, 60.0
CHECKPOINT_SECONDS, CHECKPOINT_LOOK_SECONDS = 900.0, 1.0
"""How long the last checkpoint may take; an older one is no longer the last."""
NO_KEY = "no_key"


class DeadmanWatch:
    """A thread over the switch, from the guard's start to its end."""

    def __init__(
        self,
        settings: GuardSettings,
        notes: BucketNotes,
        clock: GuardClock,
        output: GuardOutput,
        status: GuardStatus,
        disk: DiskState,
        carrier: CheckpointCarrier,
    ) -> None:
        """Go on with the count on the disk."""
        self._lease = settings.lease
        self._settings = settings.deadman
        self._notes = notes
        self._clock = clock
        self._output = output
        self._status = status
        self._disk = disk
        self._carrier = carrier
        self._stopping = threading.Event()
        after = self._settings.after_seconds if self._settings is not None else 0.0
        self._switch = DeadmanSwitch(after, disk.facts.get("deadman"))
        self._is_asked = False

    def start(self, stopping: threading.Event) -> None:
        """Begin, if there is a switch and the market's key for it; end when the guard must stop."""
        self._stopping = stopping
        if self._settings is None:
            return
        if not self._settings.has_key:
            self._status.set(deadman=NO_KEY)
            self._say("the market put no key for this instance into the container: the switch never fires")
            return
        threading.Thread(target=self._run, args=(self._settings,), daemon=True, name="deadman").start()

    def _run(self, settings: DeadmanSettings) -> None:
        while not self._stopping.is_set():
            try:
                if self._looked() and self._switch.is_due:
                    self._fire(settings)
            except Exception as failure:  # noqa: BLE001 - without this thread nothing is stopped any more
                self._say(f"tried again, after {type(failure).__name__}")
            self._clock.wait(self._stopping, LOOK_SECONDS)

    def _looked(self) -> bool:
        """Ask the bucket for the sign of life; return whether it answered."""
        try:
            found = self._notes.read(ALIVE)
        except TooLarge:
            found = None
        except StoreFailed:
            return False
        sign = deadman_switch.read_sign(*found) if found is not None else None
        self._switch.answered(self._clock.now(), sign)
        self._keep()
        return True

    def _keep(self) -> None:
        """Write the count to the disk. An instance that is started again after its stop has the whole time anew."""
        facts = self._switch.facts()
        self._disk.keep(deadman={**facts, "silent_seconds": 0.0} if self._is_asked else facts)

    def _fire(self, settings: DeadmanSettings) -> None:
        """Try until the process ends, or until the daemon is back."""
        self._say(f"the daemon has been silent for {self._switch.silent_seconds:.0f} s")
        carried: float | None = None
        is_whole = has_noted = False
        while not self._stopping.is_set():
            if carried is None or self._clock.now() - carried >= CHECKPOINT_SECONDS:
                is_whole, carried = self._carried_last(), self._clock.now()
            if self._looked():
                if not self._switch.is_due:
                    self._call_off(has_noted=has_noted)
                    return
                destroys = settings.destroys and is_whole and self._is_verified()
                if self._has_noted(destroys=destroys):
                    has_noted = True
                    self._ask(settings, destroys=destroys)
            self._clock.wait(self._stopping, RETRY_SECONDS)

    def _carried_last(self) -> bool:
        """Carry a last checkpoint; return whether the bucket has every file that the work saved."""
        self._carrier.carry_last()
        until = self._clock.now() + CHECKPOINT_SECONDS
        while not self._carrier.has_carried_last:
            if self._clock.wait(self._stopping, CHECKPOINT_LOOK_SECONDS):
                return False
            if self._clock.now() >= until:
                self._say(f"no last checkpoint came within {CHECKPOINT_SECONDS:.0f} s")
                return False
        return self._carrier.is_carrying or self._carrier.has_all

    def _is_verified(self) -> bool:
        try:
            return self._carrier.list.pointed() is not None
        except StoreFailed:
            return False

    def _has_noted(self, *, destroys: bool) -> bool:
        """Write the note of the coming request; return whether the request may be sent."""
        note = {
            "version": VERSION,
            "lease": self._lease,
            "silent_seconds": round(self._switch.silent_seconds, 3),
            "written": self._switch.written,
            "manifest": self._disk.facts.get("manifest"),
            "destroys": destroys,
        }
        try:
            self._notes.write(self._note_name, note)
        except Refused as refusal:
            self._say(f"{self._note_name} cannot be written: {refusal}")
        except StoreFailed:
            return False
        return True

    def _ask(self, settings: DeadmanSettings, *, destroys: bool) -> None:
        # If the market agrees, this process may end before the answer.
        self._is_asked = True
        self._keep()
        try:
            market_stop.send(settings, destroys=destroys)
        except MarketFailed as failure:
            self._is_asked = False
            self._keep()
            self._say(f"{failure}, tried again in {RETRY_SECONDS:.0f} s")
            return
        self._say(f"the market was asked to {'end' if destroys else 'stop'} this instance")

    def _call_off(self, *, has_noted: bool) -> None:
        """Remove the note, which would name a wrong cause of a later stop."""
        self._say("the daemon is back, the instance goes on")
        self._is_asked = False
        self._keep()
        if has_noted:
            try:
                self._notes.write(self._note_name, {"version": VERSION, "lease": self._lease, "called_off": True})
            except StoreFailed as failure:
                self._say(f"{self._note_name} stays: {failure}")

    @property
    def _note_name(self) -> str:
        return f"deadman-{self._lease}.json"

    def _say(self, sentence: str) -> None:
        self._output.say(f"gpubid-guard: dead man's switch: {sentence}")
