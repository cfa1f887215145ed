"""Requests about many groups: each goes to the group's coordinator, and each group has its own result.

Groups with the same coordinator share a request. After a temporary error (a coordinator that moves, loads, or waits for a transaction)
Ferry asks again for a while, for that group only. Any other error becomes the result of that group and does not affect others. A broker
that hangs costs one time-out, not one for each request. Only a refused login raises.
"""

import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kafka.protocol.metadata import FindCoordinatorRequest

from ferry.clusters.answers import ASKED_AGAIN, FIND_COORDINATOR, Action, RequestKind
from ferry.clusters.connections import ClusterConnection, EventLoop, RequestLost, RequestNotSent
from ferry.clusters.leaders import ELECTION_SECONDS
from ferry.clusters.pauses import doubling
from ferry.errors import FerryError, GroupFailed

T = TypeVar("T")

# If no group gets an answer for this long, the groups that are left must not delay the sync further. The next sync asks again.
PATIENCE_SECONDS = ELECTION_SECONDS
# For a broker that hangs: much longer than a slow answer takes, because the other groups wait too.
ANSWER_MILLISECONDS = 15_000
FIRST_PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 0.5
# A broker handles one request of a connection at a time. A second one waits there already, so the broker is never idle.
REQUESTS_A_CONNECTION = 2
GROUPS_A_LOOKUP = 500
ANY_BROKER = -1
# The newest version without share groups; before 4 a request names one group (KIP-699).
FIND_COORDINATOR_VERSION, FIND_SEVERAL = 5, 4

# The answer for one group: Kafka's error code, and the value if the code is 0.
Answer = tuple[int, T | None]
Ask = Callable[[ClusterConnection, int, Sequence[str]], Awaitable[Mapping[str, Answer[T]]]]


@dataclass(frozen=True)
class GroupQuestion(Generic[T]):
    """A question about every group.

    `ask` sends one `request` about some groups to one broker, and gives the answers by group. `doing` and `grant` (a right on the group)
    are for error texts. `groups_a_request`: the most groups in one request. `repeatable`: whether Ferry may send a request again whose
    answer was lost.
    """

    doing: str
    request: RequestKind
    grant: str
    ask: Ask[T]
    groups_a_request: int
    repeatable: bool = True


@dataclass
class _State(Generic[T]):
    """The open groups, each with the last problem; the results of the others; and the brokers that did not answer in this round."""

    open: dict[str, str]
    done: dict[str, T | FerryError] = field(default_factory=dict)
    answered: int = 0
    unanswered: dict[int, str] = field(default_factory=dict)


class GroupRequests:
    """Asks the coordinators of groups over one or more connections to one cluster. `coordinators` caches the broker ids by group."""

    def __init__(self, loop: EventLoop, connections: Sequence[ClusterConnection], coordinators: dict[str, int]) -> None:
        self._loop = loop
        self._connections = connections
        self._coordinators = coordinators

    async def each(self, question: GroupQuestion[T], groups: Iterable[str]) -> dict[str, T | FerryError]:
        """The result of every group. AuthenticationFailed if the cluster refuses the login."""
        state: _State[T] = _State(dict.fromkeys(groups, "no answer"))
        answered, quiet, pauses = 0, time.monotonic(), doubling(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        while True:
            state.unanswered.clear()
            await self._locate(question, state)
            await self._ask_all(question, state)
            if state.answered > answered:
                answered, quiet, pauses = state.answered, time.monotonic(), doubling(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
            if not state.open or time.monotonic() - quiet > PATIENCE_SECONDS:
                break
            await self._learn_brokers(state)
            if quiet < time.monotonic() - FIRST_PAUSE_SECONDS:  # no pauses while brokers answer one group after another
                await self._loop.sleep(next(pauses))
        alias = self._connections[0].alias
        for group, problem in state.open.items():
            state.done[group] = GroupFailed(f"cluster {alias}: {question.doing} group {group}: {problem}, for {PATIENCE_SECONDS:.0f} s")
        return state.done

    async def _locate(self, question: GroupQuestion[T], state: _State[T]) -> None:
        while unknown := [group for group in state.open if group not in self._coordinators][:GROUPS_A_LOOKUP]:
            try:
                answer = await self._connections[0].send(
                    FindCoordinatorRequest(key=unknown[0], key_type=0, coordinator_keys=unknown, max_version=FIND_COORDINATOR_VERSION),
                    milliseconds=ANSWER_MILLISECONDS,
                )
            except (RequestNotSent, RequestLost) as problem:
                state.open.update(dict.fromkeys(unknown, str(problem)))
                state.unanswered[ANY_BROKER] = str(problem)
                return
            found = (
                [(entry.key, entry.error_code, entry.node_id) for entry in answer.coordinators]
                if answer.version >= FIND_SEVERAL
                else [(unknown[0], answer.error_code, answer.node_id)]
            )
            for group, code, node in found:
                if code == 0:
                    self._coordinators[group] = node
                else:
                    self._note(question, state, group, (code, None), FIND_COORDINATOR)
            if any(FIND_COORDINATOR.action(code) in ASKED_AGAIN for _, code, _ in found):
                return

    async def _ask_all(self, question: GroupQuestion[T], state: _State[T]) -> None:
        by_node: dict[int, list[str]] = {}
        for group in state.open:
            if group in self._coordinators:
                by_node.setdefault(self._coordinators[group], []).append(group)
        size = question.groups_a_request
        waiting = deque(
            (node, members[start : start + size]) for node, members in by_node.items() for start in range(0, len(members), size)
        )
        workers = [
            self._loop.start(self._work, question, state, connection, waiting)
            for connection in self._connections
            for _ in range(REQUESTS_A_CONNECTION)
        ]
        for worker in workers:
            await worker

    async def _work(
        self, question: GroupQuestion[T], state: _State[T], connection: ClusterConnection, waiting: deque[tuple[int, list[str]]]
    ) -> None:
        while waiting:
            node, groups = waiting.popleft()
            if node in state.unanswered:  # each of its other requests would cost a time-out too
                self._unanswered(state, groups, state.unanswered[node])
                continue
            try:
                answers = await question.ask(connection, node, groups)
            except (RequestNotSent, RequestLost) as problem:
                state.unanswered[node] = str(problem)
                if question.repeatable or isinstance(problem, RequestNotSent):
                    self._unanswered(state, groups, str(problem))
                    continue
                for group in groups:
                    del state.open[group]
                    state.done[group] = GroupFailed(f"{question.doing} group {group}: it is not known whether that was done: {problem}")
            else:
                for group, answer in answers.items():
                    self._note(question, state, group, answer, question.request)

    def _unanswered(self, state: _State[T], groups: Sequence[str], problem: str) -> None:
        for group in groups:
            state.open[group] = problem
            self._coordinators.pop(group, None)

    def _note(self, question: GroupQuestion[T], state: _State[T], group: str, answer: Answer[T], asked: RequestKind) -> None:
        if group not in state.open:
            return
        code, value = answer
        action = asked.action(code)
        if value is None and action in ASKED_AGAIN:
            state.open[group] = asked.told(code)
            if action is Action.COORDINATOR:
                self._coordinators.pop(group, None)
            return
        del state.open[group]
        state.answered += 1
        doing = f"{question.doing} group {group}"
        if value is not None:
            state.done[group] = value
        elif action is Action.DENIED:
            of_group = "{group}" in question.request.meaning(code).told
            right = f"{question.grant} {group}" if of_group else question.request.right(code)
            state.done[group] = self._connections[0].denied(doing, right)
        else:
            unclear = "it is not known whether that was done: " if action is Action.UNKNOWN else ""
            state.done[group] = GroupFailed(f"cluster {self._connections[0].alias}: {doing}: {unclear}{asked.told(code)}")

    async def _learn_brokers(self, state: _State[T]) -> None:
        for connection in self._connections if state.unanswered else ():
            try:
                await connection.refresh_brokers()
            except (RequestNotSent, RequestLost):
                continue  # no broker is up right now; the next round reports that
