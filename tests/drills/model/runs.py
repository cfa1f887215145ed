"""Two runs of one flow, one lane, one partition: every interleaving of their drivers, their task attempts and a lossy network.

A process that died is one that makes no more steps, so each crash point is in here; one that wakes up late is too. Plans are Ferry's own
(plan_partitions, covered), and so is the life of a transaction (advance). Each transaction copies one record.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.drills.model.broker import Contents, Position, Span, abort, add, commit, end_by_abort, init
from tests.drills.model.exploring import World
from tests.drills.model.rules import Rules
from tests.drills.model.run_worlds import (
    COPIED,
    ENDED,
    NAMES,
    Attempt,
    Late,
    Runs,
    Scene,
    Step,
    disagreement,
    plain,
    planned,
    start,
)

from ferry.copying.transaction import TransactionEvent as Event
from ferry.copying.transaction import advance


class RunModel:
    """What can happen next, under some rules. Not `strict`: only what becomes of the data counts, not who wrote it or stopped."""

    def __init__(self, scene: Scene, rules: Rules, *, strict: bool = True) -> None:
        self.scene, self.rules, self.strict = scene, rules, strict

    def world(self, bound: int = 1_000_000) -> World[Runs]:
        """To be explored."""
        return World(start(self.scene, 1 if self.rules.fence_at_start else 2), self.following, self.wrong, self.done, bound)

    def wrong(self, world: Runs) -> str:
        """What the target must never look like."""
        return world.wrong or disagreement(self.scene.first or 0, world.there)

    def done(self, world: Runs) -> bool:
        """Both runs have ended, one of them as it should, and everything was copied."""
        ends = {driver.at for driver in world.drivers}
        wanted = self.scene.end - (0 if self.scene.backfill else self.scene.first or 0)
        return "finished" in ends and ends <= ENDED and len(world.there.records) == wanted

    def following(self, world: Runs) -> Iterator[Step]:
        """Each possible next step."""
        for label, after in self._all(world):
            yield label, plain(after)

    def _all(self, world: Runs) -> Iterator[Step]:
        for number in range(len(world.drivers)):
            yield from self._driver(world, number)
        for number, attempt in enumerate(world.attempts):
            for label, after in self._attempt(world, number, attempt):
                yield f"{NAMES[attempt.run]} task{'' if number == attempt.run else f' ({number})'}: {label}", after
        yield from self._network(world)

    # -- the driver

    def _lane_of(self, run: int) -> int:
        return 0 if self.rules.fence_at_start else run

    def _driver(self, world: Runs, number: int) -> Iterator[Step]:
        driver, name = world.drivers[number], f"{NAMES[number]} driver"
        if number and driver.at == "start" and world.drivers[0].at == "start":
            return  # the older one is the one that began first
        reading = "take" if self.rules.fence_before_reading else "read the head"
        match driver.at:
            case "start":
                yield f"{name}: takes the run's id", world._replace(run=number).driver(number, at=reading)
            case "take":
                yield f"{name}: takes the lane", self._taken(world, number, "prove first")
            case "prove first":
                proven = self._proven(world, number, "hand out" if not self.rules.fence_before_reading else "read the head")
                taken_over = proven.drivers[number].at != "superseded"
                yield f"{name}: writes the flow record", proven._replace(holder=max(world.holder, number)) if taken_over else proven
            case "read the head" if not (self.rules.read_to_bound and world.unstable("head")):
                yield f"{name}: reads the head", world.driver(number, at="read the position", head=world.there.head)
            case "read the position" if not world.unstable("position"):
                after = "read the ledger" if self.scene.backfill else "plan"
                yield f"{name}: reads the position", world.driver(number, at=after, position=world.there.position)
            case "read the ledger" if not (self.rules.read_to_bound and world.unstable("receipts")):
                yield f"{name}: reads the ledger and plans", self._plan(world, number, world.there.receipts)
            case "plan":
                yield f"{name}: plans", self._plan(world, number, ())
            case _:
                yield from self._driver_with_tasks(world, number)

    def _driver_with_tasks(self, world: Runs, number: int) -> Iterator[Step]:
        name = f"{NAMES[number]} driver"
        match world.drivers[number].at:
            case "hand out":
                yield f"{name}: hands the lane out", self._hand_out(world, number)
            case "waiting":
                yield from self._waiting(world, number)
            case "prove before taking back":
                yield f"{name}: proves that it holds the run", self._proven(world, number, "take back")
            case "take back":
                after = "prove after" if self.rules.prove_after_taking else "read the head"
                yield f"{name}: takes the lane back", self._taken(world, number, after)
            case "prove after":
                yield f"{name}: proves that it still holds the run", self._proven(world, number, "read the head")
            case _:
                return

    def _taken(self, world: Runs, number: int, after: str) -> Runs:
        where = self._lane_of(number)
        of, epoch = init(world.lanes[where], None, bumps=self.rules.bumps)
        return world.lane(where, of).driver(number, at=after, lane=epoch)

    def _proven(self, world: Runs, number: int, after: str) -> Runs:
        return world.driver(number, at=after if world.run == number else "superseded")

    def _plan(self, world: Runs, number: int, receipts: tuple[Span, ...]) -> Runs:
        driver = world.drivers[number]
        units = planned(self.scene, driver.head, None if driver.position is None else driver.position.offset, receipts)
        if isinstance(units, str):
            proven = self._proven(world, number, driver.at) if self.rules.prove_before_blaming else world
            if proven.drivers[number].at == "superseded":
                return proven
            return world._replace(wrong=f"a run stops with {units} for no reason") if self.strict else world.driver(number, at="stopped")
        held = self.rules.fence_before_reading or driver.lane >= 0
        after = "finished" if not units else "hand out" if held else "take"
        return world.driver(number, at=after, units=units)

    def _hand_out(self, world: Runs, number: int) -> Runs:
        return self._spawned(world, number).driver(number, at="waiting")

    def _spawned(self, world: Runs, number: int) -> Runs:
        driver = world.drivers[number]
        expected = None if driver.position is None else driver.position.offset
        return world._replace(attempts=(*world.attempts, Attempt(number, "settle first", driver.lane, driver.units, expected)))

    def _waiting(self, world: Runs, number: int) -> Iterator[Step]:
        name, driver = f"{NAMES[number]} driver", world.drivers[number]
        own = [attempt for attempt in world.attempts if attempt.run == number]
        if any(attempt.at == "finished" for attempt in own):
            yield f"{name}: is done", world.driver(number, at="finished")
        elif driver.again:
            proves = self.rules.prove_before_taking_back
            after = "prove before taking back" if proves else "take back"
            yield f"{name}: takes its task for dead", world.driver(number, at=after, again=driver.again - 1)
        if world.doubles and not self.rules.first_attempt_only:
            yield f"{name}: Spark starts the task once more", self._spawned(world, number)._replace(doubles=world.doubles - 1)

    # -- a task attempt

    def _attempt(self, world: Runs, number: int, attempt: Attempt) -> Iterator[Step]:
        match attempt.at:
            case "settle first":
                yield "ends by the driver's pair what may be open", self._end(world, number, "first init")
            case "first init":
                after = "second init" if self.rules.two_inits else "compare"
                yield "inits with the driver's pair", self._init(world, number, after)
            case "second init":
                yield "inits with the pair that it got", self._init(world, number, "compare")
            case "compare" if not world.unstable("position"):
                yield "compares positions", self._compared(world, number)
            case "recover" if self.rules.conditional_recovery:
                yield "ends what may be open", self._end(world, number, "init again")
            case "recover" | "init again":
                label = "inits with the pair that it holds" if self.rules.conditional_recovery else "inits without conditions"
                yield label, self._init(world, number, "look", conditional=self.rules.conditional_recovery)
            case "look" if not (world.unstable("position") and self.rules.look_after_lost_commit):
                yield "looks at the position", self._look(world, number, attempt)
            case _:
                yield from self._copying(world, number, attempt)

    def _copying(self, world: Runs, number: int, attempt: Attempt) -> Iterator[Step]:
        match attempt.at:
            case "ready" if attempt.done < len(attempt.units):
                yield from self._append(world, number, attempt)
            case "ready":
                yield "is done", self._finished(world, number)
            case "appended":
                yield "appends receipt and head", self._explain(world, number, attempt)
            case "explained":
                yield from self._put_position(world, number, attempt)
            case "closing":
                yield from self._commit(world, number, attempt)
            case "receipt":
                kind, offset = attempt.units[attempt.done - 1]
                there = world.there.plus(Contents(receipts=((kind, offset, offset + 1),)))
                yield "writes the receipt", world._replace(there=there).attempt(number, at="ready")
            case _:
                return

    def _init(self, world: Runs, number: int, after: str, *, conditional: bool = True) -> Runs:
        attempt, where = world.attempts[number], self._lane_of(world.attempts[number].run)
        of, epoch = init(world.lanes[where], attempt.pair if conditional else None, bumps=self.rules.bumps)
        world = world.lane(where, of)
        return self._fenced(world, number) if epoch is None else world.attempt(number, at=after, pair=epoch)

    def _end(self, world: Runs, number: int, after: str) -> Runs:
        attempt, where = world.attempts[number], self._lane_of(world.attempts[number].run)
        of, epoch = end_by_abort(world.lanes[where], attempt.pair, bumps=self.rules.bumps)
        world = world.lane(where, of)
        return self._fenced(world, number) if epoch is None else world.attempt(number, at=after, pair=epoch)

    def _fenced(self, world: Runs, number: int) -> Runs:
        return world.attempt(number, at="fenced", state=advance(world.attempts[number].state, Event.FENCED))

    def _compared(self, world: Runs, number: int) -> Runs:
        found = world.there.position
        if (None if found is None else found.offset) != world.attempts[number].expected:
            proven = self._init(world, number, "") if self.rules.prove_before_blaming else world
            if proven.attempts[number].at == "fenced":
                return proven
            wrong = "a task stops with PositionDisagrees for no reason"
            return world._replace(wrong=wrong) if self.strict else world.attempt(number, at="stopped")
        return world.attempt(number, at="ready")

    def _finished(self, world: Runs, number: int) -> Runs:
        missing = set(world.attempts[number].units) - set(world.there.records)
        if missing:
            return world._replace(wrong=f"lost: {sorted(missing)} count as copied")
        return world.attempt(number, at="finished")

    def _sent(self, world: Runs, number: int, more: Contents, **changes: object) -> Runs:
        """After a request that the target answers."""
        attempt, where = world.attempts[number], self._lane_of(world.attempts[number].run)
        of, epoch = add(world.lanes[where], attempt.pair, more)
        if epoch is None:
            return self._fenced(world, number)
        world = world.lane(where, of).attempt(number, **changes)
        return world._replace(wrong="a superseded run writes") if self.strict and attempt.run < world.holder else world

    def _uncertain(self, world: Runs, number: int, late: Late | None, **changes: object) -> Runs:
        state = advance(world.attempts[number].state, Event.OUTCOME_UNKNOWN)
        world = world._replace(late=(*world.late, *((late,) if late else ())), losses=world.losses - 1)
        return world.attempt(number, at="recover", state=state, **changes)

    def _append(self, world: Runs, number: int, attempt: Attempt) -> Iterator[Step]:
        more = Contents(records=(attempt.units[attempt.done],))
        state = advance(attempt.state, Event.APPEND)
        opened = attempt.opened + 1
        what = "{} record {}".format(*attempt.units[attempt.done])
        yield f"appends {what}", self._sent(world, number, more, at="appended", state=state, opened=opened)
        if world.losses:
            late = Late(f"{NAMES[attempt.run]} task's Produce", self._lane_of(attempt.run), attempt.pair, more)
            begun = world.attempt(number, state=state, opened=opened)
            yield f"appends {what}: no answer, not there yet", self._uncertain(begun, number, late)

    def _explain(self, world: Runs, number: int, attempt: Attempt) -> Runs:
        receipt = self._receipt(number, attempt)
        receipts = (receipt,) if self.rules.receipt_inside else ()
        marks = ((number, attempt.opened),) if self.scene.follows else ()
        state = advance(attempt.state, Event.CLOSE)
        more = Contents(receipts=receipts, head=self._position(attempt), marks=marks)
        growing = None if self.rules.grow_what_is_committed else receipt
        return self._sent(world, number, more, at="explained", state=state, receipt=receipt, growing=growing)

    def _receipt(self, number: int, attempt: Attempt) -> Span:
        """Of the unit at hand: if the run follows, the receipt of the last commit with a larger end."""
        kind, offset = attempt.units[attempt.done]
        if not self.scene.follows:
            return kind, offset, offset + 1
        start, marks = offset, ()
        if attempt.growing is not None and attempt.growing[0] == kind and attempt.growing[2] >= offset:
            start, (marks,) = attempt.growing[1], attempt.growing[3:]
        return kind, start, offset + 1, (*marks, (number, attempt.opened))

    @staticmethod
    def _position(attempt: Attempt) -> int:
        """The position after the unit at hand."""
        copied = [offset for kind, offset in attempt.units[: attempt.done + 1] if kind == COPIED]
        return copied[-1] + 1 if copied else attempt.expected or 0

    def _put_position(self, world: Runs, number: int, attempt: Attempt) -> Iterator[Step]:
        more = Contents(position=Position(self._position(attempt), (number, attempt.opened)))
        yield "puts the position in", self._sent(world, number, more, at="closing")
        if world.losses:
            late = Late(f"{NAMES[attempt.run]} task's TxnOffsetCommit", self._lane_of(attempt.run), attempt.pair, more)
            label = "puts the position in: no answer, not there yet"
            if self.rules.positions_sent_once:
                yield label, self._uncertain(world, number, late)
            else:
                lost = world._replace(late=(*world.late, late), losses=world.losses - 1)
                yield f"{label}; sends it again", self._sent(lost, number, more, at="closing")

    def _commit(self, world: Runs, number: int, attempt: Attempt) -> Iterator[Step]:
        where = self._lane_of(attempt.run)
        of, more, epoch = commit(world.lanes[where], attempt.pair, bumps=self.rules.bumps)
        state = advance(attempt.state, Event.COMMIT)
        if epoch is None:
            yield "commits: refused", self._fenced(world, number)
        else:
            after = "ready" if self.rules.receipt_inside else "receipt"
            there = world.lane(where, of)._replace(there=world.there.plus(more))
            known = {"done": attempt.done + 1, "expected": self._position(attempt), "state": advance(state, Event.DONE)}
            known["growing"] = attempt.receipt if self.scene.follows else None
            yield "commits", there.attempt(number, at=after, pair=epoch, **known)
            if world.losses:
                doubtful = there.attempt(number, state=state)
                yield "commits: the answer is lost", self._uncertain(doubtful, number, None, in_doubt=True)
        if world.losses:
            late = Late(f"{NAMES[attempt.run]} task's EndTxn", where, attempt.pair, Contents())
            doubtful = world.attempt(number, state=state)
            yield "commits: no answer, not there yet", self._uncertain(doubtful, number, late, in_doubt=True)

    def _look(self, world: Runs, number: int, attempt: Attempt) -> Runs:
        found = world.there.position
        changes: dict[str, object] = {"state": advance(attempt.state, Event.PROVEN), "in_doubt": False, "at": "ready"}
        if not self.rules.look_after_lost_commit:
            return world.attempt(number, **changes)
        mine = found is not None and (
            found.mark == (number, attempt.opened) if self.rules.look_at_mark else found.offset == self._position(attempt)
        )
        if attempt.in_doubt and mine:
            changes |= {"done": attempt.done + 1, "expected": self._position(attempt)}
            changes["growing"] = attempt.receipt if self.scene.follows else None
        return self._compared(world.attempt(number, **changes), number)

    # -- the network and the coordinator's clock

    def _network(self, world: Runs) -> Iterator[Step]:
        for late in world.late:
            rest = world._replace(late=tuple(other for other in world.late if other != late))
            if late.what.endswith("EndTxn"):
                of, more, _ = commit(world.lanes[late.lane], late.pair, bumps=self.rules.bumps)
                yield f"{late.what} arrives", rest.lane(late.lane, of)._replace(there=world.there.plus(more))
            else:
                yield f"{late.what} arrives", rest.lane(late.lane, add(world.lanes[late.lane], late.pair, late.contents).id)
        if world.timeouts:
            for where, of in enumerate(world.lanes):
                if of.open is not None:
                    yield (
                        "the coordinator times the transaction out",
                        world.lane(where, abort(of, bumps=self.rules.bumps))._replace(timeouts=world.timeouts - 1),
                    )
