"""Every step of the transaction table, and every step that it refuses."""

from __future__ import annotations

import itertools

import pytest

from ferry.copying.transaction import TransactionEvent as Event
from ferry.copying.transaction import TransactionState as State
from ferry.copying.transaction import TransitionRefused, advance

pytestmark = pytest.mark.unit

# Written from the module's drawing, not from its table.
ALLOWED = {
    (State.READY, Event.APPEND): State.OPEN,
    (State.OPEN, Event.APPEND): State.OPEN,
    (State.OPEN, Event.CLOSE): State.CLOSING,
    (State.CLOSING, Event.CLOSE): State.CLOSING,
    (State.CLOSING, Event.NOTHING_ACCEPTED): State.OPEN,
    (State.CLOSING, Event.COMMIT): State.COMMITTING,
    (State.COMMITTING, Event.DONE): State.READY,
    (State.UNCERTAIN, Event.PROVEN): State.READY,
    **{(state, Event.OUTCOME_UNKNOWN): State.UNCERTAIN for state in State if state is not State.FENCED},
    **{(state, Event.FENCED): State.FENCED for state in State},
}


@pytest.mark.parametrize(("state", "event"), list(itertools.product(State, Event)))
def test_every_pair(state: State, event: Event) -> None:
    if (state, event) in ALLOWED:
        assert advance(state, event) is ALLOWED[state, event]
    else:
        with pytest.raises(TransitionRefused, match=f"{event.value} in state {state.value}"):
            advance(state, event)


def test_nothing_is_committed_without_being_closed_and_nothing_twice() -> None:
    path = [Event.APPEND, Event.CLOSE, Event.COMMIT, Event.DONE]
    state = State.READY
    for event in path:
        state = advance(state, event)
    assert state is State.READY
    for event in (Event.COMMIT, Event.DONE, Event.CLOSE, Event.PROVEN):
        with pytest.raises(TransitionRefused):
            advance(state, event)


def test_fenced_is_final() -> None:
    assert {state for event in Event for state in _after(State.FENCED, event)} == {State.FENCED}


def _after(state: State, event: Event) -> set[State]:
    try:
        return {advance(state, event)}
    except TransitionRefused:
        return set()
