"""record -> send -> resolve: the only caller of a market's writing methods.

Invariants:
1. *Recorded* and *sent* are durable before the first byte leaves; nothing is ever sent again from the journal.
2. A paying write is sent at most once per intent. Only the market's positive word confirms, only its own refusal code
   rejects; everything else, a crash included, leaves doubt.
3. When the ledger cannot be written nothing is paid for; release and pause go on unjournaled and say so. Only a release
   that makes room for a rent waits with it.
4. Nothing is sent, releases included, by a daemon that cannot show that it leads: another may want that lease.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import structlog

from agent.act import crashpoint, intents, ownership_proof, rent_terms
from agent.act.endings import begun_releases
from agent.act.endings.ending_refusals import EndingRefusals
from agent.act.endings.unjournaled_endings import UnjournaledEndings
from agent.act.guarding.guard_launches import GuardLaunches
from agent.act.guarding.guarded_rents import GuardedRents
from agent.act.kept_hosts.host_keeping import HostKeeping
from agent.act.record import add_charges
from agent.clock import Clock
from agent.decide.accounting import meter
from agent.decide.moves import break_before_make, cooldowns_after_writes, due_endings
from agent.decide.operators import guard_runs, reload
from agent.decide.reconcile import billed_times, outcomes
from agent.domain import open_starts
from agent.domain.market.label import Label
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.intent import Intent, IntentState
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work import kept_terms
from agent.domain.work.decision import GONE, KIND, Decision, Hold, Pause, Rebid, Release, Rent, Resume
from agent.domain.work.ready_sign import Readiness
from agent.domain.work.workload import Checkpoint, Workload
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.store import Ledger
from agent.ledger.transaction import Transaction
from agent.markets import labels, market_errors, port, send_permit

log = structlog.get_logger("gpubid.journal")

UNPROVEN = "the market has not shown our label on this instance twice yet; gpubid tries again after that"


class Journal:
    """Carries out decisions, one durable intent each."""

    def __init__(
        self,
        ledger: Ledger,
        markets: Mapping[str, port.Market],
        clock: Clock,
        new_id: Callable[[], str],
        denial: Callable[[Intent], str] = lambda _: "",
        credential: rent_terms.Credential = rent_terms.none,
        guards: GuardLaunches | None = None,
    ) -> None:
        """Write to `ledger` and `markets`; `new_id` makes 16 hex characters, `denial` returns why not to send any more.

        `credential` returns a credential just before it is sent; `guards` prepares starts of guards.
        """
        self.guarded = GuardedRents(ledger, clock, guards)
        self.ending_refusals = EndingRefusals(clock)
        self.unjournaled = UnjournaledEndings()
        self._credential = credential
        self._keeping = HostKeeping(ledger, clock, credential)
        self._ledger = ledger
        self._markets = markets
        self._clock = clock
        self._reopens: dict[str, datetime] = {}
        self._new_id = new_id
        self._denial = denial
        self.looks: Mapping[str, billed_times.Look] = {}
        """The last listing of each lease, by its id, from the last cycle."""
        self.before_ending: Callable[[Lease], Awaitable[None]] | None = None
        """Told of each lease that is about to be released or paused; it may take a turn of the event loop."""
        self._naming = asyncio.Lock()
        """Held from the check that a reply names no instance with an earlier lease, to the opening of the new lease."""

    async def carry_out(self, decision: Decision, work: Workload | None) -> Intent | None:
        """Record, send and resolve one decision; return the intent as it ended.

        A hold has none. The lease counts as the ledger has it now: it may have been metered since the decision. A write
        to an instance on which nobody has seen our label is denied (rule 18).

        Raises:
            LedgerError: a paying write, or a release that makes room for one, could not be recorded; it was not sent.
        """
        if isinstance(decision, Hold):
            return None
        if not isinstance(decision, Rent):
            decision = replace(decision, lease=self.present(decision.lease))
        if isinstance(decision, Release | Pause) and self.before_ending is not None:
            await self.before_ending(decision.lease)
        proven = await self._proven(decision)
        return await self._carry_out(proven or decision, work, UNPROVEN if proven is None else "")

    async def _carry_out(self, decision: Decision, work: Workload | None, unproven: str) -> Intent | None:
        intent = self._intent(decision, work)
        # A look into a bucket takes up to two minutes, and a kill waits until every rent has been through here.
        denied = self._denial(intent)
        if not denied and await self.guarded.is_needless(intent, decision, work):
            return None
        if isinstance(decision, Rent) and decision.kept is not None:
            return await self._go_on(intent, decision, self.present(decision.kept), work)
        refused = ""
        try:
            await self._record(intent, decision)
            crashpoint.reached("recorded", intent.kind.value)
            refused = unproven or denied or self._denial(intent)
            permit = self._ledger.permit(is_paying=intent.kind.is_paying)
            intent = await self._advance(intent, IntentState.DENIED if refused else IntentState.SENT, refused)
        except LedgerError as error:
            makes_room = break_before_make.makes_room(decision, self._ledger.recollection(intent.recorded_at).leases)
            if error.code is Code.DEPOSED or intent.kind.is_paying or refused or unproven or makes_room:
                raise
            self._ledger.refuse_unled()
            with send_permit.under(self._ledger.permit()):
                await self.unjournaled.send(intent, decision, self._markets[intent.market], error)
            return None
        if refused:
            self.guarded.take(intent.intent_id)
            return intent
        crashpoint.reached("sent", intent.kind.value)
        with send_permit.under(permit, intents.renewal(intent, self._ledger, self._clock)):
            return await self._send(intent, decision, work)

    async def _go_on(self, intent: Intent, decision: Rent, kept: Lease, work: Workload | None) -> Intent | None:
        """Let the host of a finished task go on with another slot; None if that may not be, and nothing changed."""
        launch = self.guarded.take(intent.intent_id)
        if launch is None or work is None or self._denial(intent):
            return None
        if self.before_ending is not None:
            await self.before_ending(kept)
        ends = self._ends(Release(kept, decision.reason), self._clock.now())
        return await self._keeping.go_on(intent, decision, kept, work, launch, ends)

    @property
    def clock(self) -> Clock:
        """The clock that dates intents."""
        return self._clock

    def reaches(self, market: str) -> bool:
        """Return whether this process is connected to a market; an order without a daemon may lack its key."""
        return market in self._markets

    def can_pause(self, lease: Lease) -> bool:
        """Return whether the market of a lease pauses it, by its record at the last look or by what it is."""
        look = self.looks.get(lease.lease_id)
        return (look.rules if look is not None else self._markets[lease.market].rules()).can_pause

    def present(self, held: Lease) -> Lease:
        """Return a lease as the ledger has it now, or unchanged if it is not open."""
        leases = self._ledger.recollection(self._clock.now()).leases
        return next((lease for lease in leases if lease.lease_id == held.lease_id), held)

    def reopens_at(self, intent: Intent) -> datetime | None:
        """Return when the market accepts the call of a throttled intent again, once; None if it did not say."""
        return self._reopens.pop(intent.intent_id, None)

    async def keep_due(self, decision: Release) -> None:
        """Record that a lease is to be released although the market accepts no such call now.

        A ledger that cannot be written changes nothing: due releases are derived again in every cycle.
        """
        lease = self.present(decision.lease)
        if not lease.is_open or (lease.state is LeaseState.RELEASING and decision.reason.code != GONE):
            return
        try:
            async with self._ledger.transaction() as tx:
                begun_releases.begin(tx, decision, lease, self._clock.now())
        except LedgerError as error:
            log.error("release.unwritten", lease=lease.lease_id, reason=str(error))

    async def _proven(self, decision: Decision) -> Decision | None:
        """Return a decision whose instance was shown to be ours, or None: its write waits for the proof.

        For a release or a pause the proof is tried here and now.
        """
        if isinstance(decision, Rent | Hold) or decision.lease.is_proven:
            return decision
        if isinstance(decision, Release | Pause):
            lease = decision.lease
            proven = await ownership_proof.prove(self._ledger, self._markets[lease.market], lease, self._clock.now)
            if proven is not None:
                return replace(decision, lease=proven)
        log.warning("write.unproven", kind=KIND[type(decision)].value, lease=decision.lease.lease_id)
        return None

    def _intent(self, decision: Decision, work: Workload | None) -> Intent:
        now = self._clock.now()
        run = None
        if isinstance(decision, Rent) and work is not None and work.guard is not None:
            run = guard_runs.last(self._ledger.recollection(now).guard_runs).get(decision.slot)
        return intents.of(decision, work, self._new_id(), now, run)

    async def _record(self, intent: Intent, decision: Decision) -> None:
        async with self._ledger.transaction() as tx:
            tx.record_intent(intent)
            if not isinstance(decision, Release):
                return
            if decision.lease.is_open:
                begun_releases.begin(tx, decision, decision.lease, intent.recorded_at)

    async def _advance(self, intent: Intent, state: IntentState, outcome: str) -> Intent:
        now = self._clock.now()
        async with self._ledger.transaction() as tx:
            tx.advance_intent(intent.intent_id, state, at=now, outcome=outcome)
        if state is IntentState.SENT:
            return replace(intent, state=state, sent_at=now)
        return replace(intent, state=state, outcome=outcome, resolved_at=now)

    async def _send(self, intent: Intent, decision: Decision, work: Workload | None) -> Intent:
        try:
            instance_id, is_accepted = await self._call(intent, decision, work)
        except market_errors.NotFound as error:
            if isinstance(decision, Release):
                return await self._confirmed(intent, decision, work, "", is_accepted=True)
            return await self._rejected(intent, decision, "not_found", str(error), "")
        except market_errors.Rejected as error:
            return await self._refused(intent, decision, error)
        except (market_errors.Throttled, market_errors.Unauthorized) as error:
            if isinstance(error, market_errors.Throttled) and error.until is not None and not intent.kind.is_paying:
                self._reopens[intent.intent_id] = error.until
            return await self._rejected(intent, decision, error.code, str(error), "")
        except BaseException as error:
            crashpoint.reached("replied", intent.kind.value)
            await self._doubted(intent, error, decision.reason.code)
            if isinstance(error, Exception):
                return replace(intent, state=IntentState.IN_DOUBT)
            raise
        crashpoint.reached("replied", intent.kind.value)
        return await self._answered(intent, decision, work, instance_id, is_accepted=is_accepted)

    async def _answered(
        self, intent: Intent, decision: Decision, work: Workload | None, instance_id: str, *, is_accepted: bool
    ) -> Intent:
        async with self._naming:
            if isinstance(decision, Rent) and await self._has_leased(intent.market, instance_id):
                return await self._misnamed(intent, instance_id)
            return await self._confirmed(intent, decision, work, instance_id, is_accepted=is_accepted)

    async def _refused(self, intent: Intent, decision: Decision, error: market_errors.Rejected) -> Intent:
        async with self._naming:
            if error.leftover_id and await self._has_leased(intent.market, error.leftover_id):
                return await self._misnamed(intent, error.leftover_id)
            return await self._rejected(intent, decision, error.reason, str(error), error.leftover_id)

    async def _misnamed(self, intent: Intent, instance_id: str) -> Intent:
        said = f"its reply names instance {instance_id}, which had a lease before; the next listing decides"
        await self._doubted(intent, market_errors.Ambiguous(said))
        return replace(intent, state=IntentState.IN_DOUBT)

    async def _has_leased(self, market: str, instance_id: str) -> bool:
        """Return whether the instance in a rent's reply had a lease already: then it is not the one rented now."""
        known = await (await self._ledger.reader()).leases(instances={instance_id})
        return any(lease.market == market for lease in known)

    async def _call(self, intent: Intent, decision: Decision, work: Workload | None) -> tuple[str, bool]:
        """Send the one request of `intent`, note its verdict on our key, and return as `_ask`."""
        try:
            answer = await self._ask(intent, decision, work)
        except market_errors.MarketError as error:
            self.ending_refusals.note(intent.market, intent.kind, error)
            raise
        self.ending_refusals.note(intent.market, intent.kind, None)
        return answer

    async def _ask(self, intent: Intent, decision: Decision, work: Workload | None) -> tuple[str, bool]:
        """Send the one request of `intent`; return (instance id, whether it took effect at once)."""
        market = self._markets[intent.market]
        if isinstance(decision, Rent):
            if work is None:
                raise market_errors.Rejected("no_workload", "no workload of that name is configured")
            label = labels.text(Label(self._ledger.fleet_id, decision.slot, intent.intent_id, self._ledger.epoch))
            terms = rent_terms.of(decision, work, self._credential, self.guarded.take(intent.intent_id))
            return await market.rent(decision.offer, terms, label), True
        if isinstance(decision, Rebid):
            await market.rebid(decision.lease.instance_id, decision.bid)
        elif isinstance(decision, Resume):
            return decision.lease.instance_id, await market.resume(decision.lease.instance_id)
        elif isinstance(decision, Pause):
            await market.pause(decision.lease.instance_id)
        elif isinstance(decision, Release):
            is_gone, is_gentle = due_endings.is_gone(decision), due_endings.is_gentle(decision, self._clock.now())
            await market.release(decision.lease.instance_id, is_gone=is_gone, is_gentle=is_gentle)
        return intent.instance_id, True

    async def _confirmed(
        self, intent: Intent, decision: Decision, work: Workload | None, instance_id: str, *, is_accepted: bool
    ) -> Intent:
        now = self._clock.now()
        if isinstance(decision, Rent):
            outcome = outcomes.rented(intent, decision, instance_id, now)
        else:
            promise, ready = (work.checkpoint, work.ready) if work else (Checkpoint(), Readiness())
            ends = self._ends(decision, now)
            outcome = outcomes.written(decision, now, promise, ready, is_accepted=is_accepted, ends=ends)
        async with self._ledger.transaction() as tx:
            tx.advance_intent(
                intent.intent_id,
                IntentState.CONFIRMED,
                at=now,
                outcome="done" if is_accepted else "queued",
                instance_id=outcome.lease.instance_id,
                lease_id=outcome.lease.lease_id,
            )
            if isinstance(decision, Rent):
                tx.open_lease(reload.rented_for(kept_terms.recorded(outcome.lease, work), work))
                tx.add_expiring(cooldowns_after_writes.after_rent(decision.slot, now))
            elif not isinstance(decision, Hold) and decision.lease.is_open:
                tx.update_lease(outcome.lease)
                add_charges(tx, outcome.lease, outcome.charges, now)
                self._record_cooldowns(tx, decision, now)
            happened = intents.event_of(outcome.kind, intent, decision, outcome.lease.host_id, now)
            tx.append_event(replace(happened, lease_id=outcome.lease.lease_id))  # the intent of a rent names none
        crashpoint.reached("resolved", intent.kind.value)
        return replace(intent, state=IntentState.CONFIRMED, resolved_at=now, lease_id=outcome.lease.lease_id)

    def _record_cooldowns(self, tx: Transaction, decision: Decision, now: datetime) -> None:
        """Begin and end the cooldowns that follow from a confirmed write; remember a start and its end by a pause."""
        for place in cooldowns_after_writes.ended_tallies(decision):
            tx.lift_expiring(place)
        if isinstance(decision, Resume):
            tx.add_expiring(cooldowns_after_writes.after_start(decision.lease.lease_id, now))
        if isinstance(decision, Pause):
            known = self._ledger.recollection(now)
            for start in cooldowns_after_writes.taken_back(decision, known.intents, known.tallies, now):
                tx.add_expiring(start)
            for rest in cooldowns_after_writes.after_pause(decision, now):
                tx.add_expiring(rest)

    def may_start(self, lease: Lease) -> bool:
        """Return whether a start of a lease is under way or in doubt."""
        known = self._ledger.recollection(self._clock.now())
        return bool(open_starts.of(lease, known.intents, known.tallies))

    def _ends(self, decision: Decision, now: datetime) -> Sequence[meter.Turn]:
        """Return how the billing of a lease that ends now changed since it was metered last."""
        if not isinstance(decision, Pause | Release):
            return ()
        lease = decision.lease
        unseen = billed_times.Look(lease.accrued_until, rules=self._markets[lease.market].rules())
        return billed_times.to_the_end(lease, self.looks.get(lease.lease_id, unseen), now)

    async def _rejected(
        self, intent: Intent, decision: Decision, reason: str, sentence: str, leftover_id: str
    ) -> Intent:
        now = self._clock.now()
        log.warning(EventKind.INTENT_REJECTED, intent=intent.intent_id, kind=intent.kind.value, reason=reason)
        async with self._ledger.transaction() as tx:
            tx.advance_intent(intent.intent_id, IntentState.REJECTED, at=now, outcome=reason, instance_id=leftover_id)
            said = f"{reason}: {sentence}"
            tx.append_event(intents.event_of(EventKind.INTENT_REJECTED, intent, decision, intent.host_id, now, said))
            tallies = self._ledger.recollection(now).tallies
            for record in cooldowns_after_writes.after_refusal(decision, reason, tallies, now, sentence):
                tx.add_expiring(record)
            if isinstance(decision, Rent) and leftover_id:
                left = outcomes.rented(intent, decision, leftover_id, now, is_leftover=True)
                tx.open_lease(left.lease)
                happened = intents.event_of(
                    left.kind, intent, decision, intent.host_id, now, "a refused bid left it behind"
                )
                tx.append_event(replace(happened, lease_id=left.lease.lease_id))
        crashpoint.reached("resolved", intent.kind.value)
        return replace(intent, state=IntentState.REJECTED, resolved_at=now, outcome=reason)

    async def _doubted(self, intent: Intent, error: BaseException, code: str = "") -> None:
        now = self._clock.now()
        said = str(error)[:200] or type(error).__name__
        is_taken = isinstance(error, market_errors.Unfinished)
        kind = EventKind.INTENT_ACCEPTED if is_taken else EventKind.INTENT_IN_DOUBT
        tell = log.info if is_taken else log.warning
        tell(kind, intent=intent.intent_id, kind=intent.kind.value, reason=said)
        async with self._ledger.transaction() as tx:
            tx.advance_intent(intent.intent_id, IntentState.IN_DOUBT, at=now, outcome=said)
            tx.append_event(
                Event(
                    at=now,
                    kind=kind,
                    workload=intent.slot.workload,
                    slot=intent.slot.index,
                    intent_id=intent.intent_id,
                    lease_id=intent.lease_id,
                    market=intent.market,
                    host_id=intent.host_id,
                    rate=intent.rate,
                    reason_code=code,
                    reason=f"{intent.kind.value}: {said}",
                )
            )
