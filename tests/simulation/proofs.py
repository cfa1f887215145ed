"""Proofs of a flow's id by which a process fences another one, without knowing or wanting it.

Ferry proves an id by EndTxn(abort) and an init, both with its pair (Coordinator.prove). If another process takes the id between these two,
the broker refuses the init, but first it aborts a transaction that is open: `TransactionCoordinator.prepareInitProducerIdTransit` looks at
the epoch only if none is. Before transaction.version 2, and on Kafka 4.0, this fences the holder. Ferry cannot prevent it: the process may
have stood still, or the init may be read late. But an EndTxn that is sent after the id was taken is refused, and then no init may follow.
"""

from __future__ import annotations

from kafka.protocol.producer import EndTxnRequest, InitProducerIdRequest
from tests.simulation.wires import STRAY_SECONDS
from tests.simulation.world import Fate

# Of two requests that are sent within this time, in seconds, either may be the first at the broker.
SOON = 0.01


class Proofs:
    """All proofs of one flow's id."""

    def __init__(self) -> None:
        self._begun: dict[str, float] = {}  # when a process sent the EndTxn of its last proof
        self._late: dict[str, float] = {}  # when a process sent an init that may come after another one has taken the id

    def note(self, who: str, request: InitProducerIdRequest | EndTxnRequest, fate: Fate, now: float, holder: tuple[str, float]) -> None:
        """A request for an id. `holder`: who has taken the flow's id last, and when."""
        if not str(request.transactional_id).endswith("-run"):
            return
        name, since = holder
        if isinstance(request, EndTxnRequest):
            self._begun[who] = now
        elif request.producer_id >= 0:
            overtaken = who != name and self._begun.get(who, now) < since + SOON
            if overtaken or fate is not Fate.WHOLE:
                self._late[who] = now

    def may_have_fenced(self, name: str, taken: float) -> bool:
        """Whether a proof of another process than this one may have come after it took the id."""
        return any(sent + STRAY_SECONDS >= taken for who, sent in self._late.items() if who != name)
