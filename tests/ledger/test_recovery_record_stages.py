"""The stages of a flow between its two sides."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.errors import RecoveryStopped
from ferry.ledger.recovery_record import TRANSITIONS, Event, Stage, advance

pytestmark = pytest.mark.unit

BEGINS = {Event.FAILOVER_BEGINS, Event.CUTOVER_BEGINS, Event.FAILBACK_BEGINS}
MOVING = {Stage.FAILING_OVER, Stage.CUTTING_OVER, Stage.FAILING_BACK}


def test_failover_and_failback() -> None:
    stage = Stage.REPLICATING
    for event, expected in (
        (Event.FAILOVER_BEGINS, Stage.FAILING_OVER),
        (Event.FAILOVER_BEGINS, Stage.FAILING_OVER),  # it was killed
        (Event.FAILOVER_ENDS, Stage.FAILED_OVER),
        (Event.FAILBACK_BEGINS, Stage.FAILING_BACK),
        (Event.FAILBACK_BEGINS, Stage.FAILING_BACK),
        (Event.FAILBACK_ENDS, Stage.REPLICATING),
        (Event.CUTOVER_BEGINS, Stage.CUTTING_OVER),
        (Event.CUTOVER_ENDS, Stage.CUT_OVER),
        (Event.FAILBACK_BEGINS, Stage.FAILING_BACK),
    ):
        stage = advance("A->B", stage, event)
        assert stage is expected


@pytest.mark.parametrize(("stage", "event"), [pair for pair in product(Stage, Event) if pair not in TRANSITIONS])
def test_an_event_that_is_not_possible_says_what_is(stage: Stage, event: Event) -> None:
    with pytest.raises(RecoveryStopped, match=f"A->B is {stage.value}: .*`ferry (failover|cutover|failback)`"):
        advance("A->B", stage, event)


@given(events=st.lists(st.sampled_from(Event)))
def test_only_an_end_lets_a_flow_replicate_again(events: list[Event]) -> None:
    """What was begun can be begun again and ended; only the end of a failback, or giving up, frees the groups."""
    stage = Stage.REPLICATING
    for event in events:
        if (stage, event) not in TRANSITIONS:
            continue
        before, stage = stage, advance("A->B", stage, event)
        assert (event in BEGINS) == (stage in MOVING)
        if stage is Stage.REPLICATING:
            assert event is Event.FAILBACK_ENDS or event.value.endswith("abandoned")
            assert before is not Stage.REPLICATING
        if stage in MOVING:
            assert (stage, event) in TRANSITIONS, "killed, it can be begun again"
            assert any(at is stage and then.value.endswith("ends") for at, then in TRANSITIONS)
