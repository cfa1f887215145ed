"""The description of one property."""

from dataclasses import dataclass
from enum import Enum

from ferry.config.registry.kinds import Kind


class Effect(Enum):
    HONOURED = "honoured"
    RENAMED = "older name"  # Ferry reads it as its successor
    NO_EFFECT = "no effect"
    REFUSED = "refused"


class Scope(Enum):
    """Where a property belongs, by MM2's rules."""

    FILE = "file"  # top level only
    FLOW = "flow"  # top level, for all flows, and `A->B.`
    FLOW_ONLY = "flow only"  # `A->B.` only: MM2 ignores it at the top level
    WORKER = "worker"  # Kafka Connect's: top level and `A.`
    CLUSTER = "cluster"  # `A.` only
    CLIENT = "client"  # `A.`, `A.consumer.` and so on


@dataclass(frozen=True)
class Property:
    name: str
    kind: Kind
    default: str | None
    meaning: str
    # Why it has no effect, what to write instead of a refused property, or who stopped reading an older name.
    why: str = ""
    scope: Scope = Scope.FLOW
    effect: Effect = Effect.HONOURED
    # The Java clients that have a client property: `consumer`, `producer`, `admin`.
    roles: frozenset[str] = frozenset()
    of_target: bool = False  # Whether a property of flows may also stand after the alias of the flow's target.
    successor: str = ""  # The property that an older name stands for.

    @property
    def login(self) -> bool:
        """Whether MM2 reads it without a role too, for a cluster and at the top level."""
        return self.scope is Scope.CLIENT and self.name.startswith(("bootstrap.servers", "security.protocol", "ssl.", "sasl."))
