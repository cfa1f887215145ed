"""What a proxy does to what passes: conditions of the link, and rules for single Kafka requests.

A rule is met by the header of a request (its api key, its client id) and, if asked for, by bytes anywhere inside it, such as a
transactional id. Chance comes from the proxy's own seeded generator.
"""

from __future__ import annotations

import random
import struct
import threading
from dataclasses import dataclass, field
from enum import Enum

# Kafka's api keys that tests aim at.
PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_FETCH = 0, 1, 2, 3, 9
FIND_COORDINATOR, INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, END_TXN, TXN_OFFSET_COMMIT = 10, 22, 24, 25, 26, 28
API_VERSIONS, CREATE_TOPICS, DESCRIBE_ACLS, DESCRIBE_CONFIGS, ALTER_CONFIGS = 18, 19, 29, 32, 33
INCREMENTAL_ALTER_CONFIGS, DESCRIBE_CLUSTER = 44, 60
# TCP's first retransmission of a lost segment comes no earlier than this on Linux; every further one takes twice as long.
RETRANSMIT_SECONDS = 0.2
RETRANSMISSIONS = 5


class Way(Enum):
    """A direction: what clients ask, or what the broker answers."""

    REQUESTS = "requests"
    ANSWERS = "answers"


class Action(Enum):
    """What happens to a request that meets a rule.

    SWALLOW_* leaves the connection open and the client waiting; CUT_BEFORE and CUT_AFTER reset it, the one before the broker gets the
    request, the other once the broker has answered. DELAY_* holds up all that follows on the same connection, as TCP would; a delayed
    request still reaches the broker when its client has gone meanwhile.
    """

    SWALLOW_REQUEST = "swallow request"
    SWALLOW_ANSWER = "swallow answer"
    CUT_BEFORE = "cut before"
    CUT_AFTER = "cut after"
    DELAY_REQUEST = "delay request"
    DELAY_ANSWER = "delay answer"


@dataclass(frozen=True)
class Link:
    """Conditions of one direction. `delay` and `jitter` in seconds (jitter: up to so much more), `bytes_per_second` None for no limit.

    loss: the chance of each frame to meet a lost packet. TCP would send it again, so it comes late: by 0.2 s, 0.6 s, 1.4 s…
    """

    delay: float = 0.0
    jitter: float = 0.0
    bytes_per_second: float | None = None
    loss: float = 0.0

    def lag(self, dice: random.Random) -> float:
        """Seconds that the next frame is under way."""
        seconds = self.delay + dice.random() * self.jitter
        for again in range(RETRANSMISSIONS):
            if dice.random() >= self.loss:
                break
            seconds += RETRANSMIT_SECONDS * 2**again
        return seconds


@dataclass(frozen=True)
class Request:
    """The header of one request, and all its bytes without the length."""

    api: int
    correlation: int
    client: str
    body: bytes

    @classmethod
    def of(cls, body: bytes) -> Request:
        """Read the header (versions 1 and 2 begin alike)."""
        api, _, correlation, length = struct.unpack_from(">hhih", body)
        return cls(api, correlation, body[10 : 10 + max(length, 0)].decode(errors="replace"), body)


@dataclass
class Rule:
    """`action` for the requests of `api` that meet it.

    seconds: for DELAY_*. times: so often, None for always. skip: so many let pass first. client: the client id begins so. containing:
    bytes of the request. chance: 0…1. `hits` counts, `wait` returns once it was met.
    """

    api: int
    action: Action
    seconds: float = 0.0
    times: int | None = 1
    skip: int = 0
    client: str = ""
    containing: bytes = b""
    chance: float = 1.0
    hits: int = 0
    _met: threading.Event = field(default_factory=threading.Event)

    def wait(self, seconds: float) -> bool:
        """Whether it was met within so many seconds."""
        return self._met.wait(seconds)

    def meets(self, request: Request, dice: random.Random) -> bool:
        """Whether it applies to this request; counted."""
        if self.api != request.api or (self.times is not None and self.hits >= self.times):
            return False
        if not request.client.startswith(self.client) or self.containing not in request.body or dice.random() >= self.chance:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.hits += 1
        self._met.set()
        return True
