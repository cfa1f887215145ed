"""The parts of a soak that judge: stamps show what was altered, the recorder keeps what is known, a run's end needs a cause."""

from __future__ import annotations

import signal

import pytest
from confluent_kafka import KafkaError
from hypothesis import given
from hypothesis import strategies as st
from tests.drills.histories.model import Outcome, Poll, Seen
from tests.drills.soak.recording import Recorder
from tests.drills.soak.report import Log
from tests.drills.soak.runs import allowed
from tests.drills.soak.stamps import HEADER, Content, read_stamp, stamped
from tests.drills.soak.summary import Figures, page

pytestmark = pytest.mark.unit

PLACE = ("soak-plain", 2)
HEADERS = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=3).map(tuple)
CONTENTS = st.builds(Content, st.none() | st.binary(max_size=9), st.none() | st.binary(max_size=20), HEADERS, st.integers(0, 2**41))


@given(CONTENTS, st.booleans())
def test_a_record_says_who_it_is(content: Content, in_header: bool) -> None:
    seen = read_stamp(17, stamped((3, 4), PLACE, content, in_header=in_header))
    assert (seen.offset, seen.id, seen.sent_to, seen.intact) == (17, (3, 4), PLACE, True)


@given(CONTENTS, CONTENTS, st.booleans())
def test_a_record_of_another_content_is_not_intact(content: Content, other: Content, in_header: bool) -> None:
    sent = stamped((3, 4), PLACE, content, in_header=in_header)
    stamp = [header for header in sent.headers if header[0] == HEADER][-1:]
    for field in ("key", "timestamp", "headers"):
        altered = sent._replace(**{field: getattr(other, field)})
        if field == "headers":
            altered = altered._replace(headers=(*other.headers, *stamp))
        assert read_stamp(0, altered).intact is (altered == sent)


def test_a_record_of_somebody_else_has_no_id() -> None:
    for value in (None, b"", b"anything", b"1 2 3|x", b"a b c d e|x", b"\xff|x"):
        assert read_stamp(5, Content(None, value, (), 0)).id is None


def test_what_the_recorder_keeps() -> None:
    recorder = Recorder()
    for sequence in range(4):
        recorder.sending((1, sequence), PLACE, "w/1", b"k")
    recorder.answered((1, 0), None, 7)
    recorder.answered((1, 1), KafkaError(KafkaError._MSG_TIMED_OUT), None)
    recorder.answered((1, 2), KafkaError(KafkaError._PURGE_QUEUE), None)
    recorder.ended("w", "w/1", Outcome.OK)
    history = recorder.history({})
    assert [(send.offset, send.outcome) for send in history.sends] == [
        (7, Outcome.OK),
        (None, Outcome.UNKNOWN),
        (None, Outcome.FAILED),
        (None, Outcome.UNKNOWN),
    ]
    assert recorder.settled(["w", "other"], since=0.0) == ["w/1"]
    assert recorder.history({}).transactions == {"w/1": Outcome.UNKNOWN}
    assert recorder.history({}).torn_at_source == {"w/1"}


def test_the_recorder_counts_what_the_source_holds() -> None:
    recorder = Recorder()
    seen = [Seen(offset, id, PLACE) for offset, id in enumerate([(1, 0), (1, 1), (1, 0), None, None])]
    recorder.source_polls += [Poll("witness", PLACE, tuple(seen[:2])), Poll("witness", PLACE, tuple(seen[2:]))]
    recorder.source_polls.append(Poll("another", PLACE, tuple(seen)))
    assert recorder.history({}).source_times == {(1, 0): 2, (1, 1): 1}


@pytest.mark.parametrize(
    ("code", "causes", "right"),
    [
        (0, {}, True),
        (1, {}, False),
        (3, {}, False),
        (5, {}, False),
        (6, {}, False),
        (6, {"overlapped": True}, True),
        (3, {"overlapped": True}, False),
        (3, {"broken": True}, True),
        (5, {"broken": True}, True),
        (1, {"broken": True}, False),
        (4, {"broken": True, "struck": True, "overlapped": True}, False),
        (2, {"broken": True, "struck": True, "overlapped": True}, False),
        (-signal.SIGKILL, {"struck": True}, True),
    ],
)
def test_a_run_that_does_not_end_well_needs_a_cause(code: int, causes: dict[str, bool], right: bool) -> None:
    assert allowed(code, **{"struck": False, "overlapped": False, "broken": False, **causes}) is right


def test_the_page_says_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    log = Log(7)
    log.fault("kill whole tree", "3 processes")
    log.verdict("history", "2 sends", [])
    log.exits["struck"][-9] += 1
    figures = Figures(1.0, False, "today", 2, dict.fromkeys(Outcome, 0), 1, (0, 0), 0)
    assert "**No record was lost" in page(log, figures)
    log.verdict("groups", "1 position", ["g is elsewhere"])
    text = page(log, figures)
    assert "**1 problems, below.**" in text
    assert "- groups: g is elsewhere" in text
    assert "| kill whole tree | 1 |" in text
    assert "seed 7" in capsys.readouterr().out
