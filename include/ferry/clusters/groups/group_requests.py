"""Requests about many groups: each goes to the group's coordinator, and each group has its own result.

Groups with the same coordinator share a request. After a temporary error (a coordinator that moves, loads, or waits for a transaction)
Ferry asks again for a while, for that group only. Any other error becomes the result of that group and does not affect others. A broker
that hangs costs one time-out, not one for each request. Only a refused login raises.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from kafka.protocol.metadata import FindCoordinatorRequest

from ferry import clock
from ferry.clusters.net.backoff import doubling
from ferry.clusters.net.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.error_policy import ASKED_AGAIN, FIND_COORDINATOR, Action, RequestKind
from ferry.clusters.net.leaders import ELECTION_SECONDS
from ferry.clusters.net.partitions import chunks, grouped
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
GROUP_COORDINATOR, TRANSACTION_COORDINATOR, ANY_BROKER = 0, 1, -1
UNCLEAR = "it is not known whether that was done: "
# The newest version without share groups; before 4 a request names one group (KIP-699).
FIND_COORDINATOR_VERSION, FIND_SEVERAL = 5, 4

# The answer for one group: Kafka's error code, and the value if the code is 0.
Answer = tuple[int, T | None]
Ask = Callable[[ClusterConnection, int, Sequence[str]], Awaitable[Mapping[str, Answer[T]]]]


@dataclass(frozen=True)
class GroupQuestion(Generic[T]):
    """A question about every group."""

    doing: str  # for error texts
    request: RequestKind
    grant: str  # for error texts: a right on the group
    ask: Ask[T]  # sends one `request` about some groups to one broker, and gives the answers by group
    groups_a_request: int  # at most
    repeatable: bool = True  # whether Ferry may send a request again whose answer was lost


async def find_coordinators(
    connection: ClusterConnection, keys: Sequence[str], key_type: int = GROUP_COORDINATOR, milliseconds: int | None = None
) -> list[tuple[str, int, int]]:
    """Key, error code and broker of each coordinator. A broker before version 4 answers for the first key only."""
    request = FindCoordinatorRequest(key=keys[0], key_type=key_type, coordinator_keys=keys, max_version=FIND_COORDINATOR_VERSION)
    answer = await connection.send(request, milliseconds=milliseconds)
    if answer.version < FIND_SEVERAL:
        return [(keys[0], answer.error_code, answer.node_id)]
    return [(entry.key, entry.error_code, entry.node_id) for entry in answer.coordinators]


class GroupRequests(Generic[T]):
    """Asks one question about groups, over one or more connections to one cluster. The first one remembers coordinators."""

    def __init__(self, connections: Sequence[ClusterConnection], question: GroupQuestion[T]) -> None:
        self._connections, self._question = connections, question
        self._loop, self._coordinators = connections[0].loop, connections[0].coordinators
        self._open: dict[str, str] = {}  # the groups that still have no result, each with the last problem
        self._done: dict[str, T | FerryError] = {}  # the results of the others
        self._answered = 0  # how many groups have an answer
        self._unanswered: dict[int, str] = {}  # the brokers that did not answer in this round

    async def each(self, groups: Iterable[str]) -> dict[str, T | FerryError]:
        """The result of every group. AuthenticationFailed if the cluster refuses the login."""
        self._open = dict.fromkeys(groups, "no answer")
        answered, quiet, pauses = 0, clock.monotonic(), doubling(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        while True:
            self._unanswered.clear()
            await self._locate()
            await self._ask_all()
            if self._answered > answered:
                answered, quiet, pauses = self._answered, clock.monotonic(), doubling(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
            if not self._open or clock.monotonic() - quiet > PATIENCE_SECONDS:
                break
            for connection in self._connections if self._unanswered else ():
                with suppress(RequestNotSent, RequestLost):  # no broker is up right now; the next round reports that
                    await connection.refresh_brokers()
            if quiet < clock.monotonic() - FIRST_PAUSE_SECONDS:  # no pauses while brokers answer one group after another
                await self._loop.sleep(next(pauses))
        for group, problem in self._open.items():
            self._done[group] = self._failure(group, f"{problem}, for {PATIENCE_SECONDS:.0f} s")
        return self._done

    async def _locate(self) -> None:
        while unknown := [group for group in self._open if (GROUP_COORDINATOR, group) not in self._coordinators][:GROUPS_A_LOOKUP]:
            try:
                found = await find_coordinators(self._connections[0], unknown, milliseconds=ANSWER_MILLISECONDS)
            except (RequestNotSent, RequestLost) as problem:
                self._open.update(dict.fromkeys(unknown, str(problem)))
                self._unanswered[ANY_BROKER] = str(problem)
                return
            for group, code, node in found:
                if code == 0:
                    self._coordinators[GROUP_COORDINATOR, group] = node
                else:
                    self._note(group, (code, None), FIND_COORDINATOR)
            if any(FIND_COORDINATOR.action(code) in ASKED_AGAIN for _, code, _ in found):
                return

    async def _ask_all(self) -> None:
        places = ((self._coordinators.get((GROUP_COORDINATOR, group)), group) for group in self._open)
        by_node = grouped((node, group) for node, group in places if node is not None)
        waiting = deque((node, some) for node, members in by_node.items() for some in chunks(members, self._question.groups_a_request))
        workers = [
            self._loop.start(self._work, connection, waiting) for connection in self._connections for _ in range(REQUESTS_A_CONNECTION)
        ]
        for worker in workers:
            await worker

    async def _work(self, connection: ClusterConnection, waiting: deque[tuple[int, Sequence[str]]]) -> None:
        while waiting:
            node, groups = waiting.popleft()
            if node in self._unanswered:  # each of its other requests would cost a time-out too
                self._again(groups, self._unanswered[node])
                continue
            try:
                answers = await self._question.ask(connection, node, groups)
            except (RequestNotSent, RequestLost) as problem:
                self._unanswered[node] = str(problem)
                if self._question.repeatable or isinstance(problem, RequestNotSent):
                    self._again(groups, str(problem))
                    continue
                for group in groups:
                    del self._open[group]
                    self._done[group] = GroupFailed(f"{self._question.doing} group {group}: {UNCLEAR}{problem}")
            else:
                for group, answer in answers.items():
                    self._note(group, answer, self._question.request)

    def _again(self, groups: Sequence[str], problem: str) -> None:
        for group in groups:
            self._open[group] = problem
            self._coordinators.pop((GROUP_COORDINATOR, group), None)

    def _note(self, group: str, answer: Answer[T], asked: RequestKind) -> None:
        if group not in self._open:
            return
        code, value = answer
        action = asked.action(code)
        if value is None and action in ASKED_AGAIN:
            self._open[group] = asked.told(code)
            if action is Action.COORDINATOR:
                self._coordinators.pop((GROUP_COORDINATOR, group), None)
            return
        del self._open[group]
        self._answered += 1
        if value is not None:
            self._done[group] = value
        elif action is Action.DENIED:
            of_group = "{group}" in self._question.request.meaning(code).told
            right = f"{self._question.grant} {group}" if of_group else self._question.request.right(code)
            self._done[group] = self._connections[0].denied(f"{self._question.doing} group {group}", right)
        else:
            self._done[group] = self._failure(group, f"{UNCLEAR if action is Action.UNKNOWN else ''}{asked.told(code)}")

    def _failure(self, group: str, problem: str) -> GroupFailed:
        return GroupFailed(f"cluster {self._connections[0].alias}: {self._question.doing} group {group}: {problem}")
