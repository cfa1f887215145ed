"""The life of a lane's transactions, as one table.

    READY -- append --> OPEN -- close --> CLOSING -- commit asked --> COMMITTING -- done --> READY
    any of OPEN, CLOSING, COMMITTING -- outcome unknown --> UNCERTAIN -- settled --> READY
    any -- fenced --> FENCED

In CLOSING nothing more is appended; answers still come in. UNCERTAIN is left only by a new init with the held pair, after which the
positions are read again: a commit is never repeated blindly. FENCED is final: another run owns the lane. No I/O happens here.
"""

from enum import Enum


class TransactionState(Enum):
    """Where the lane's current transaction stands."""

    READY = "ready"
    OPEN = "open"
    CLOSING = "closing"
    COMMITTING = "committing"
    UNCERTAIN = "uncertain"
    FENCED = "fenced"


class TransactionEvent(Enum):
    """What can happen to a transaction."""

    APPEND = "append"  # a batch or a position belongs to it
    CLOSE = "close"  # it is full, old, or the lane is done
    COMMIT = "commit"  # everything was accepted: EndTxn is sent
    DONE = "done"  # the coordinator confirmed
    OUTCOME_UNKNOWN = "outcome unknown"  # time-out, disconnect, or an answer that leaves the log's content open
    SETTLED = "settled"  # init with the held pair succeeded
    FENCED = "fenced"  # the broker refused the pair


class TransitionRefused(RuntimeError):
    """An event that must not happen in this state: a defect of Ferry, never of its input."""


_STATE = TransactionState
_EVENT = TransactionEvent

TRANSITIONS: dict[tuple[TransactionState, TransactionEvent], TransactionState] = {
    (_STATE.READY, _EVENT.APPEND): _STATE.OPEN,
    (_STATE.OPEN, _EVENT.APPEND): _STATE.OPEN,
    (_STATE.OPEN, _EVENT.CLOSE): _STATE.CLOSING,
    (_STATE.CLOSING, _EVENT.CLOSE): _STATE.CLOSING,
    (_STATE.CLOSING, _EVENT.COMMIT): _STATE.COMMITTING,
    (_STATE.COMMITTING, _EVENT.DONE): _STATE.READY,
    (_STATE.READY, _EVENT.OUTCOME_UNKNOWN): _STATE.UNCERTAIN,
    (_STATE.OPEN, _EVENT.OUTCOME_UNKNOWN): _STATE.UNCERTAIN,
    (_STATE.CLOSING, _EVENT.OUTCOME_UNKNOWN): _STATE.UNCERTAIN,
    (_STATE.COMMITTING, _EVENT.OUTCOME_UNKNOWN): _STATE.UNCERTAIN,
    (_STATE.UNCERTAIN, _EVENT.OUTCOME_UNKNOWN): _STATE.UNCERTAIN,
    (_STATE.UNCERTAIN, _EVENT.SETTLED): _STATE.READY,
    **{(state, _EVENT.FENCED): _STATE.FENCED for state in _STATE},
}


def advance(state: TransactionState, event: TransactionEvent) -> TransactionState:
    """The state after `event`; TransitionRefused when the table has no such step."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise TransitionRefused(f"{event.value} in state {state.value}") from None
