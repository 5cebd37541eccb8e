"""Plays a story: lives of the daemon, cycle after cycle, with the judge behind each."""

import asyncio
import contextlib
import hashlib
import shutil
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from agent.app import App
from agent.config.settings import Config
from agent.cycle import Pass
from agent.domain.work.workload import Workload
from agent.ledger.ledger_errors import LedgerError
from tests.disasters import deeds, exchange, lies, stage, strangers
from tests.disasters.auctions.auction_draw import MARKET
from tests.disasters.clouds import cloud_room
from tests.disasters.clouds.cloud_draw import MARKET as CLOUDS
from tests.disasters.exchange import Death, Process
from tests.disasters.guards.bucket import Gate
from tests.disasters.judge import Judge
from tests.disasters.life import Life, Verdict, cancel_all
from tests.disasters.orders import Order
from tests.disasters.points import pool_room, room
from tests.disasters.points.room import Room
from tests.disasters.sight import Broken, Sight
from tests.disasters.story import CALM_FROM, Deed, Story, Strike
from tests.disasters.truth import Truth
from tests.support import engines, loop

BUSY_SECONDS = 2.0
CALM_POLL = 290.0
"""Between two polls of the good weather at the end; steps of at most five minutes."""
CALM_SECONDS = 3.2 * 3600
MOST_CALM_CYCLES = 150
SETTLED_ROUNDS = 8
MOST_HURRIED_CYCLES = 60
"""So many cycles of the good weather follow soon on a busy one; after that time goes on whoever writes."""


class Player:
    """One story on its stage."""

    def __init__(self, story: Story, folder: Path, on_loop: loop.Loop) -> None:
        self.story = story
        self.stage = stage.Stage(story, folder)
        self.truth = Truth(self.stage.simulator, story.markets)
        self.judge = Judge(story, self.truth, self.stage.guards, self.stage.ports)
        self.config = self.stage.config
        self.ordered: set[str] = set()
        self.rivals: list[tuple[Any, int, float]] = []
        self.is_told_unwritten = False
        """Whether the kill in force was answered with an error that says that it is not written down."""
        self._later: list[tuple[float, Callable[[], Any]]] = []
        self._again: list[Deed] = []
        self._life: Life | None = None
        self._second: Life | None = None
        self._second_until = -1
        self._acting: Process | None = None
        self._down_until = 0.0
        self._struck: list[Strike] = []
        self._calls = hashlib.blake2b(digest_size=8)
        self.strangers = strangers.Strangers(self.stage, story.markets)
        self._cycle = 0
        on_loop.on_thread = self._on_thread

    @property
    def app(self) -> App | None:
        """Return the daemon, while one runs."""
        return self._life.app if self._life is not None else None

    @property
    def acting(self) -> Process | None:
        """Return the process whose turn it is."""
        return self._acting

    # --- called by the exchanges ------------------------------------------------------------------------------------
    def leaves(self, order: Order) -> None:
        """See an order before the market acts on it."""
        self._calls.update(f"{self.stage.clock.time():.3f} {order.market} {order.kind} {order.target}".encode())
        self.truth.refresh(self.stage.clock.time())
        is_second = self._second is not None and self._acting is self._second.process
        config = self._second.config if is_second and self._second is not None else self.config
        self.judge.leaves(order, config, is_second=is_second)

    def struck(self, strike: Strike, order: Order | None) -> None:
        """See that something went wrong."""
        self._struck.append(strike)
        self.judge.hear(self.stage.clock.time(), strike, order)
        self._calls.update(f"{self.stage.clock.time():.3f} {strike.fault}".encode())
        if order is not None and order.place == "listing" and strike.fault in lies.HIDING[order.market]:
            self.note_vanishing()

    def listed(self) -> None:
        """See that a market has just listed what there is: decisions follow from that, whatever comes after."""
        self.judge.releases.see(self.stage.clock.time())

    def shown_stale(self, market: str, ids: frozenset[str]) -> None:
        """See which instances a stale listing of a market has."""
        self.judge.money.hear_stale(market, ids)

    def other_label(self) -> str:
        """Return a label of our fleet that this ledger never wrote."""
        work = self.config.workloads[0].name if self.config.workloads else "w0"
        return strangers.label(work, self.stage.fate)

    def foreign_id(self, market: str) -> str:
        """Return the id of an instance that somebody rented by hand."""
        return self.strangers.id(market)

    def named(self, order: Order) -> Order:
        """Return an order with the id of its instance in the place of a name."""
        return replace(order, target=self.truth.named(order.market, order.target)) if order.target else order

    # --- fate -------------------------------------------------------------------------------------------------------
    def note_vanishing(self) -> None:
        """Remember that instances vanish from a listing, truly or not."""
        self.judge.hear_vanishing()

    def begin_kill(self) -> None:
        """Remember that all spending has to stop."""
        self.judge.killed_at, self.judge.is_lift_unsure = self.stage.clock.time(), False
        self.is_told_unwritten = False
        # Those of the story, too: a kill also ends what runs of a workload that a person has removed from the file.
        self.ordered |= {each.name for each in self.config.workloads} | {each.name for each in self.story.works}

    def end_kill(self) -> None:
        """Remember that a person lifted it."""
        self.judge.killed_at = None
        self.is_told_unwritten = False

    def again(self, deed: Deed) -> None:
        """Let a deed be done again once a daemon runs."""
        self._again.append(deed)

    def later(self, at: float, act: Callable[[], Any]) -> None:
        """Let something happen at a time, or when the weather clears."""
        self._later.append((at, act))

    # --- lives ------------------------------------------------------------------------------------------------------
    async def _be_born(self, config: Config) -> Life | None:
        process, before = Process(), self._acting
        self._acting = process
        try:
            app = await self.stage.open(config, process, self)
        except (Death, LedgerError):
            await cancel_all()
            return None
        finally:
            self._acting = before
        return Life(app, process, config)

    async def end_life(self, seconds: float) -> None:
        """Stop the daemon as SIGTERM does, for a while."""
        if self._life is not None:
            life, self._life = self._life, None
            self._forget(life)
            await life.app.close()
        self._is_down(seconds)

    async def bury(self, seconds: float) -> None:
        """Let the daemon be killed: nothing of it goes on, its file stays."""
        if self._life is None:
            return
        life, self._life = self._life, None
        self._forget(life)
        life.process.is_dead = True
        await cancel_all()
        with contextlib.suppress(Death):
            await life.app.ledger.close()
        self._is_down(seconds)

    def _forget(self, life: Life) -> None:
        """A kill that was never recorded ends with the program. A person who got that answer gives it again."""
        self.truth.refresh(self.stage.clock.time())
        self.judge.forget(life.app)
        if life.app.ledger.owed and self.is_told_unwritten:
            self.end_kill()
            is_keeping = len(life.app.ledger.owed) > 1
            self.again(Deed(self._cycle, "kill_keep" if is_keeping else "kill"))

    def _is_down(self, seconds: float) -> None:
        self._down_until = self.stage.clock.time() + seconds

    async def begin_second(self, cycles: int) -> None:
        """Start a second daemon on a ledger of its own, with our fleet id, for so many cycles."""
        if self._second is not None:
            return
        folder = self.stage.folder / f"second-{self._cycle}"
        stage.copy_template(folder)
        ledger = folder / "ledger.sqlite"
        own = replace(self.config, ledger=ledger, ledger_server=engines.server(ledger))
        self._second = await self._be_born(own)
        self._second_until = self._cycle + cycles

    async def _end_second(self) -> None:
        """End it, and start the first anew, as whoever ended the second would."""
        if self._second is None:
            return
        second, self._second = self._second, None
        with contextlib.suppress(Death):
            await second.app.close()
        await self.end_life(5.0)

    # --- the story --------------------------------------------------------------------------------------------------
    async def play(self) -> Verdict:
        """Play it to its end, or to the first point that does not hold."""
        broken = None
        try:
            for number in range(CALM_FROM):
                if (broken := await self._turn(number)) is not None:
                    break
            if broken is None:
                broken = await self._calm()
        finally:
            self.judge.close()
            for life in (self._life, self._second):
                if life is not None:
                    life.process.is_dead = False
                    await life.app.close()
        return Verdict(broken, self.judge.counts(), self._cycle + 1, self._calls.hexdigest())

    async def _calm(self) -> Broken | None:
        """Let the weather clear and time go on."""
        self.stage.weather.is_over = True
        for world, rival, _ in self.rivals:
            world.remove_rival(rival)
        for _, act in self._later:
            act()
        self.rivals, self._later = [], []
        self.stage.machine.off = timedelta()
        self.stage.simulator.world.calm_pulls()
        if self.stage.guards is not None:
            self.stage.guards.calm()
        await self._end_second()
        until = self.stage.clock.time() + CALM_SECONDS
        self.judge.calm_since = self.stage.clock.time()
        for number in range(CALM_FROM, CALM_FROM + MOST_CALM_CYCLES):
            if (broken := await self._turn(number)) is not None:
                return broken
            if self.stage.clock.time() >= until:
                break
        return self.judge.last_word(self._cycle, self.config.ledger)

    async def _turn(self, number: int) -> Broken | None:
        self._cycle = number
        again, self._again = (self._again, []) if self._life is not None else ([], self._again)
        for deed in (*again, *(each for each in self.story.deeds if each.cycle == number)):
            await self._do(deed)
        await self._keep_time(number)
        began = self.stage.clock.time()
        done, broken = await self._one_cycle()
        if self._second is not None:
            await self._cycle_of_second()
        broken = broken or self._look(number, began, done)
        self._struck.clear()
        is_busy = done is not None and done.is_busy and number < CALM_FROM + MOST_HURRIED_CYCLES
        calm_poll = CALM_POLL if number >= CALM_FROM + 10 else self.story.poll
        poll = calm_poll if number >= CALM_FROM else self.story.poll
        self.stage.clock.advance(max((BUSY_SECONDS if is_busy else poll) - (self.stage.clock.time() - began), 0.1))
        return broken

    async def _do(self, deed: Deed) -> None:
        self._acting = self._life.process if self._life is not None else None
        try:
            await deeds.do(deed, self)
        except Death:
            await self.bury(10.0 + 300.0 * self.stage.fate.random())
        finally:
            self._acting = None

    async def _keep_time(self, number: int) -> None:
        now = self.stage.clock.time()
        due = [act for at, act in self._later if at <= now]
        self._later = [(at, act) for at, act in self._later if at > now]
        for act in due:
            act()
        for world, rival, _ in [each for each in self.rivals if each[2] <= now]:
            world.remove_rival(rival)
        self.rivals = [each for each in self.rivals if each[2] > now]
        if self._second is not None and number >= self._second_until:
            await self._end_second()
        if self._life is None and now >= self._down_until:
            self._life = await self._be_born(self.config)
            if self._life is None:
                self._is_down(10.0)

    async def _one_cycle(self) -> tuple[Pass | None, Broken | None]:
        if self._life is None:
            return None, None
        self._acting = self._life.process
        try:
            return await self._settled(self._life.app), None
        except LedgerError as error:
            is_defect = "this is a defect" in error.sentence
            return None, Broken(0, self._cycle, f"a cycle ended so: {error.sentence}") if is_defect else None
        except Death:
            await self.bury(10.0 + 300.0 * self.stage.fate.random())
            return None, None
        except Exception:  # noqa: BLE001 - a cycle that ends by a defect is a finding
            lines = traceback.format_exc().strip().splitlines()
            return None, Broken(0, self._cycle, f"a cycle ended by a defect: {lines[-1]} ({lines[-3].strip()})")
        finally:
            self._acting = None

    async def _settled(self, app: App) -> Pass:
        """Run a cycle, and continue the tasks that it began beside itself. An exchange of a story takes no time."""
        done = await app.cycle()
        for _ in range(SETTLED_ROUNDS if self.stage.guards is not None else 0):
            await asyncio.sleep(0)
        return done

    async def _cycle_of_second(self) -> None:
        second = self._second
        if second is None:
            return
        self._acting = second.process
        try:
            await second.app.cycle()
        except Death:
            self._second = None
            await cancel_all()
            with contextlib.suppress(Death):
                await second.app.ledger.close()
            await self.end_life(5.0)
        except Exception:  # noqa: BLE001, S110 - the first is judged; the second has no files of its own worth it
            pass
        finally:
            self._acting = None

    def _look(self, number: int, began: float, done: Pass | None) -> Broken | None:
        self.truth.refresh(self.stage.clock.time())
        if self._life is None:
            return self.judge.look_blindly(number)
        sight = Sight(
            number,
            began,
            self.stage.clock.time(),
            self._life.app,
            self.truth,
            tuple(self._struck),
            has_ended=done is not None,
            is_calm=number >= CALM_FROM,
            is_shared=self._second is not None,
        )
        return self.judge.look(sight, self.config, self.ordered, self._can_run)

    def _can_run(self, work: Workload, closed: frozenset[str]) -> bool:
        """Return whether a market that is not closed has room for one more slot of a workload."""
        usable = {name for name in self.story.markets if work.may_use(name)} - closed
        if MARKET in usable and pool_room.is_enough(self.stage.simulator.mithril.world, work):
            return True
        if CLOUDS in usable and cloud_room.is_enough(self.truth.clouds, work, self.app):
            return True
        if "vast" not in usable:
            return False
        guards, life = self.stage.guards, self._life
        known = life.app.ledger.recollection(life.app.clock.now()).host_checks if life is not None else {}
        rejected = room.rejected(guards.refused, known.values()) if guards is not None else ()
        fastest = pool_room.fastest(work) if work.may_use(MARKET) and MARKET in self.story.markets else 0.0
        return Room(self.stage.simulator.world, work, rejected, fastest).is_enough

    # --- the ledger's thread ----------------------------------------------------------------------------------------
    def _on_thread(self, name: str, work: Callable[..., Any]) -> Any:
        if getattr(work, "__name__", "") == "_disconnect" or self._acting is None:
            return work()
        self._acting.check()
        if name.startswith("ledger-rw"):
            return exchange.committing(self.stage.weather, self, self._acting, work)
        return work()


def play(story: Story, folder: Path | None = None) -> Verdict:
    """Play a story from nothing; its ledger lies in memory, or in `folder`."""
    made = Path(tempfile.mkdtemp(prefix="gpubid-disaster-", dir=folder or stage.place()))
    try:
        stage.copy_template(made)
        return loop.run(lambda on_loop: _played(Player(story, made, on_loop)))
    finally:
        engines.drop(*(each / "ledger.sqlite" for each in (made, *made.glob("second-*"))))
        shutil.rmtree(made, ignore_errors=True)


async def _played(player: Player) -> Verdict:
    """Play it, with its ports and its bucket where it has them."""
    made, guards = player.stage, player.stage.guards
    with contextlib.ExitStack() as opened:
        if made.ports is not None:
            opened.enter_context(made.ports.opened(lambda: player.acting))
        if guards is not None:
            # The task that would report a task that died with its process is dead as well.
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)
            gate = Gate(guards.bucket, made.clock, made.weather, player, made.simulator.advance_to)
            opened.enter_context(gate.opened())
        return await player.play()
