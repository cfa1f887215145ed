"""Asks the script of a simulated cluster and of a real broker, and compares the answers field by field.

Ids, times and addresses differ: topic ids become names, producer ids their number in the order in which they came, times are relative.
Fields that are only hints, or texts for people, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kafka.errors import IncompatibleBrokerVersion
from tests.simulation.asker import Asker
from tests.simulation.asks import Ask, Memory
from tests.simulation.batches import HEADER, LENGTH_OVERHEAD

# Hints, sizes of disks, texts, and what depends on the moment.
_LEFT_OUT = frozenset(
    [
        "throttle_time_ms",
        "cluster_id",
        "controller_id",
        "host",
        "port",
        "rack",
        "node_endpoints",
        "current_leader",
        "snapshot_id",
        "log_append_time_ms",
        "last_timestamp",
        "coordinator_epoch",
        "transaction_start_time_ms",
        "finalized_features_epoch",
        "supported_features",
        "api_keys",
        "synonyms",
        "documentation",
        "config_type",
        "message",
        "error_message",
        "unknown_state_filters",
    ]
)
_CONTROL = 0x20
Plain = Any


@dataclass
class Names:
    """Stands for ids of one run."""

    memory: Memory
    producers: dict[int, str] = field(default_factory=dict)

    def producer(self, number: int) -> str:
        return "nobody" if number < 0 else self.producers.setdefault(number, f"producer {len(self.producers)}")

    def topic(self, topic_id: UUID) -> str:
        return next((name for name, known in self.memory.topic_ids.items() if known == topic_id), "no topic")


def plain(value: Any, names: Names, key: str = "") -> Plain:
    """An answer, or a part of it, that can be compared."""
    if hasattr(value, "to_dict"):
        value = value.to_dict(json=False)
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {name: plain(part, names, name) for name, part in value.items() if name not in _LEFT_OUT}
    if isinstance(value, UUID):
        return names.topic(value)
    if key in {"producer_id", "ongoing_txn_producer_id"}:
        return names.producer(value)
    if key == "timestamp" and value > 0:
        return value - names.memory.time
    if key == "records":
        return _batches(bytes(value or b""), names)
    if key == "configs":
        return {part["name"]: part for part in (plain(part, names) for part in value)}
    if isinstance(value, list | tuple | set):
        return sorted((plain(part, names) for part in value), key=repr)
    return value


def _batches(data: bytes, names: Names) -> list[Plain]:
    """Header and records of each batch; only the size of one that is cut off. Markers have times and a coordinator's epoch of their own."""
    found: list[Plain] = []
    while len(data) >= HEADER.size and len(data) >= (size := LENGTH_OVERHEAD + HEADER.unpack_from(data)[1]):
        base, length, epoch, magic, _, attributes, delta, first, newest, producer, producer_epoch, sequence, count = HEADER.unpack_from(
            data
        )
        times = () if attributes & _CONTROL else (first - names.memory.time, newest - names.memory.time)
        body = data[HEADER.size : HEADER.size + 11] if attributes & _CONTROL else data[HEADER.size : size]
        who = names.producer(producer), producer_epoch, sequence
        found.append((base, length, epoch, magic, attributes, delta, *times, *who, count, body))
        data = data[size:]
    return [*found, f"{len(data)} bytes more"] if data else found


@dataclass(frozen=True)
class Difference:
    """One question with two answers."""

    scene: str
    number: int
    ask: Ask
    simulated: Plain
    real: Plain

    def __str__(self) -> str:
        return f"{self.scene}, {self.number}: {self.ask}\n  " + "\n  ".join(paths(self.simulated, self.real))


def paths(simulated: Plain, real: Plain, at: str = "") -> Iterator[str]:
    """Where two answers differ."""
    if isinstance(simulated, dict) and isinstance(real, dict):
        for key in sorted(simulated.keys() | real.keys()):
            yield from paths(simulated.get(key), real.get(key), f"{at}.{key}")
    elif isinstance(simulated, list) and isinstance(real, list) and len(simulated) == len(real):
        for place, pair in enumerate(zip(simulated, real, strict=True)):
            yield from paths(*pair, f"{at}[{place}]")
    elif simulated != real:
        yield f"{at}: {simulated}, really {real}"


# Asks a real broker; again while the answer is not as expected but may become so. Waits until all markers of these ids are written.
AskReal = Callable[[Ask, Any, Callable[[Any], bool]], Any]
WaitReal = Callable[[Sequence[str]], None]


def simulated_answers(scenes: Mapping[str, Sequence[Ask]], **settings: Any) -> dict[str, list[Plain]]:
    """What the simulated cluster answers, by scene."""
    asker = Asker(**settings)
    names = Names(asker.memory)
    found: dict[str, list[Plain]] = {}
    for scene, asks in scenes.items():
        found[scene] = []
        for ask in asks:
            found[scene].append(plain(_again(asker, ask), names))
            asker.cluster.settle()
            for topic in asker.cluster.state.topics:
                asker.cluster.retain(topic)
    return found


def _again(asker: Asker, ask: Ask) -> Any:
    """The answer; None if the release does not know the request. A coordinator whose topic has just been made is asked once more."""
    try:
        answer = asker(ask)
    except IncompatibleBrokerVersion:
        return None
    coordinators = getattr(answer, "coordinators", ())
    return asker(ask) if any(one.error_code == 15 for one in coordinators) else answer


def differences(
    scenes: Mapping[str, Sequence[Ask]], expected: Mapping[str, Sequence[Plain]], memory: Memory, ask_real: AskReal, wait: WaitReal
) -> list[Difference]:
    """The questions that the real broker answers otherwise."""
    names, found, ids = Names(memory), list[Difference](), list[str]()
    for scene, asks in scenes.items():
        for number, ask in enumerate(asks):
            wanted = expected[scene][number]
            before = dict(names.producers)

            def as_expected(answer: Any, wanted: Plain = wanted, before: dict[int, str] = before) -> bool:
                names.producers = dict(before)
                return bool(plain(answer, names) == wanted)

            answer = ask_real(ask, ask.request(memory), as_expected)
            if answer is not None:
                ask.learn(memory, answer)
            names.producers = before
            told = plain(answer, names)
            if told != wanted:
                found.append(Difference(scene, number, ask, wanted, told))
            if isinstance(transactional := getattr(ask, "id", None), str) and transactional and transactional not in ids:
                ids.append(transactional)
            wait(ids)
    return found
