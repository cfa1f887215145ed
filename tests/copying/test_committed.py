"""How far a run is, by its receipts: records, speed, the time left, partitions that are last, how far a run that follows is behind."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.clusters.net.partitions import TopicPartition
from ferry.copying.committed import Committed, Progress, progress_in, shortened
from ferry.ledger.counters import Counters
from ferry.ledger.receipts import Receipt, ReceiptKind

pytestmark = pytest.mark.unit

NOW = 1_700_000_000.0


def receipt(start: int, end: int, size: int = 0, *, partition: int = 0, kind: ReceiptKind = ReceiptKind.COPIED) -> Receipt:
    counters = Counters(records=end - start, bytes=size)
    return Receipt(kind, "orders", partition, "id", "A.orders", "id", start, end, counters=counters)


def committed(*commits: tuple[float, Receipt], left: int | None = 4_000_000) -> Committed:
    """`left`: of orders-0. Each commit came so many seconds after NOW."""
    found = Committed(None if left is None else {TopicPartition("orders", 0): left})
    for at, entry in commits:
        found.add(entry, NOW + at)
    return found


def test_it_says_records_speed_the_time_left_and_what_is_last() -> None:
    found = committed((0, receipt(0, 100_000, 40_000_000)), (10, receipt(100_000, 1_100_000, 400_000_000)))
    assert found.left is not None
    found.left |= {TopicPartition("clicks", 3): 100_000, TopicPartition("done", 1): 0}
    text = "1,100,000 of 4,100,000 records (26%), 40.0 MB/s, about 30 s left; most left: orders-0 (2,900,000), clicks-3 (100,000)"
    assert found.progress(NOW + 10).text == text


def test_the_seconds_before_the_first_commit_do_not_count() -> None:
    """However long Spark took to start, the same copy has the same speed; and the first commit was copied before it came."""
    for start in (0, 20, 300):
        commits = [(start + second, receipt(second * 1_000, (second + 1) * 1_000, 1_000_000)) for second in range(26)]
        found = committed(*commits, left=102_000).progress(NOW + start + 25.5)
        assert (found.rate, found.bytes_rate) == (1_000, 1_000_000)
        assert "about 76 s left" in found.text


def test_nothing_is_foretold_before_there_is_a_speed() -> None:
    assert committed().progress(NOW).text == "0 of 4,000,000 records (0%); most left: orders-0 (4,000,000)"
    one = committed((0, receipt(0, 40_000)), (1, receipt(40_000, 80_000)))
    assert one.progress(NOW + 1).text == "80,000 of 4,000,000 records (2%), time left: not known yet; most left: orders-0 (3,920,000)"


def test_the_speed_is_that_of_the_last_minute() -> None:
    slow = [(float(second), receipt(second * 10, second * 10 + 10, 10)) for second in range(100)]
    fast = [(100.0 + second, receipt(1_000 + second * 50, 1_050 + second * 50, 50)) for second in range(100)]
    assert committed(*slow, *fast).progress(NOW + 199).rate == 50


def test_a_run_that_commits_nothing_any_more_gets_slower_and_says_so() -> None:
    found = committed((0, receipt(0, 1_000)), (10, receipt(1_000, 2_000)), left=3_000)
    assert found.progress(NOW + 60).rate == 100
    assert "last commit" not in found.progress(NOW + 60).text
    stuck = found.progress(NOW + 610)
    assert stuck.rate == pytest.approx(1_000 / 550)
    assert "about 9 min left; the last commit was 10 min ago" in stuck.text


def test_at_the_end_nothing_is_left() -> None:
    found = committed((0, receipt(0, 5)), (3, receipt(5, 10)), left=10).progress(NOW + 3)
    assert (found.share, found.text) == (1.0, "10 of 10 records (100%), 0.0 MB/s")
    assert committed(left=0).progress(NOW).share == 1.0
    almost = committed((0, receipt(0, 999_999)), left=1_000_000).progress(NOW)
    assert almost.text.startswith("999,999 of 1,000,000 records (99%)")


def test_what_is_not_known_is_not_said() -> None:
    found = committed((0, receipt(0, 5)), (5, receipt(5, 1_000, 5_000_000)), left=None).progress(NOW + 5)
    assert (found.share, found.text) == (None, "1,000 records, 1.0 MB/s")


def test_only_what_was_settled_counts() -> None:
    """Not a seed, nor what another replicator wrote; but what is lost will not be copied, nor what had come from the target."""
    seed, foreign = receipt(7, 7, kind=ReceiptKind.SEED), receipt(0, 7, kind=ReceiptKind.FOREIGN)
    returned = receipt(10, 30)
    returned = replace(returned, counters=returned.counters._replace(records=5, from_target=15))
    found = committed((0, seed), (0, foreign), (0, receipt(7, 10, kind=ReceiptKind.LOSS)), (1, returned), left=100)
    assert (found.records, found.left) == (8, {TopicPartition("orders", 0): 92})


def test_a_receipt_that_grows_is_counted_once() -> None:
    found = committed(*((0, receipt(*span)) for span in ((0, 10, 900), (0, 30, 2_800), (0, 31, 2_900), (31, 40, 900))))
    assert found.records == 40


def test_long_names_are_cut_in_the_middle() -> None:
    longest = f"{'a' * 120}.{'b' * 128}"
    text = Progress(0, 5, ((f"{longest}-17", 5),)).text
    assert f"; most left: {'a' * 19}…{'b' * 17}-17 (5)" in text
    assert max(map(len, text.split())) == 40


@given(st.text("abc.-", max_size=249), st.integers(3, 50))
def test_a_shortened_name_keeps_its_ends(name: str, width: int) -> None:
    found = shortened(name, width)
    assert len(found) == min(len(name), width)
    begin, _, end = found.partition("…")
    assert name.startswith(begin)
    assert name.endswith(end)


def test_a_run_that_follows_says_how_far_it_is_behind() -> None:
    found = Committed(follows=True)
    assert found.progress(NOW).text == "following: 0 records"
    found.add(replace(receipt(0, 900, 0, partition=1), max_timestamp=round((NOW - 700) * 1000)), NOW - 120)
    old = "following: 900 records, 0.0 MB/s; records are on the target after 580.0 s; the newest records were committed 120.0 s ago"
    assert found.progress(NOW).text == old
    found.add(replace(receipt(0, 1_000, 500_000), max_timestamp=round((NOW - 1.5) * 1000)), NOW - 0.3)
    found.add(replace(receipt(0, 1_100, 600_000), max_timestamp=round((NOW - 1.3) * 1000)), NOW - 0.1)
    assert (
        found.progress(NOW).text
        == "following: 2,000 records; records are on the target after 1.2 s; the newest records were committed 0.1 s ago"
    )
    assert (
        replace(found.progress(NOW), records=None).text
        == "following: records are on the target after 1.2 s; the newest records were committed 0.1 s ago"
    )
    assert "after less than 0.1 s; the newest" in replace(found.progress(NOW), behind=0.04).text
    silent = replace(Committed(follows=True).progress(NOW), records=None)
    assert silent.text == "following: nothing was committed in the last minute"


@given(st.integers(0, 10**15), st.integers(0, 10**15))
def test_a_terminal_finds_the_numbers_in_the_text(done: int, left: int) -> None:
    assert progress_in(Progress(done, left).text) == (done, done + left)


def test_a_terminal_finds_no_numbers_in_other_lines() -> None:
    assert progress_in(Progress(7, follows=True).text) == (0, None)
    for line in ("8 lanes, 4,000 offsets to go", "still planning the lanes (5 s)", "orders: 5 of 6 records (83%)"):
        assert progress_in(line) is None
