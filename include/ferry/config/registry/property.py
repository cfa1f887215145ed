"""What is known of one property."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ferry.config.registry.kinds import Kind


class Effect(Enum):
    """What Ferry does with a property."""

    HONOURED = "honoured"
    NO_EFFECT = "no effect"
    REFUSED = "refused"


class Scope(Enum):
    """Where a property belongs, by MM2's rules."""

    FILE = "file"  # top level only
    FLOW = "flow"  # top level as the default of all flows, and `A->B.`
    FLOW_ONLY = "flow only"  # `A->B.` only: MM2 drops it at the top level
    WORKER = "worker"  # Kafka Connect's: top level and `A.`
    CLUSTER = "cluster"  # `A.` only
    CLIENT = "client"  # `A.`, `A.consumer.` and so on


@dataclass(frozen=True)
class Property:
    """One property. `why` says why it has no effect, or what to write instead of a refused one.

    `roles` are the Java clients that know a client property (`consumer`, `producer`, `admin`). `cluster_side` is the side of a flow
    (`source`, `target`) whose `A.` prefix may hold the default of a flow's property.
    """

    name: str
    kind: Kind
    default: str | None
    meaning: str
    scope: Scope
    effect: Effect = Effect.HONOURED
    why: str = ""
    roles: frozenset[str] = frozenset()
    cluster_side: str | None = None

    @property
    def login(self) -> bool:
        """Whether MM2 counts it among its client names: those that hold for a cluster and at the top level without a role."""
        return self.scope is Scope.CLIENT and (
            self.name in {"bootstrap.servers", "security.protocol"} or self.name.startswith(("ssl.", "sasl."))
        )
