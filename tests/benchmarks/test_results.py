from __future__ import annotations

import json

import pytest
from benchmarks.measure import Sample
from benchmarks.results import FERRY, MM2_DEFAULTS, MM2_TUNED, ShapeResult, document
from benchmarks.rounds import rotated
from benchmarks.shapes import SHAPES
from benchmarks.table import caption, markdown, put_between_markers, targets_markdown
from benchmarks.targets import judge

pytestmark = pytest.mark.unit


def sample(speed: float, cpu: float = 10.0, wall: float = 10.0, worker: float = 0.0) -> Sample:
    return Sample(1000, speed, 5.0, wall, wall + 1, cpu, 500.0, worker)


@pytest.fixture
def result() -> ShapeResult:
    found = ShapeResult(SHAPES[0].of_size(2_000), limits=[1_000.0, 1_200.0, 1_100.0])
    for speed, worker in ((900.0, 100.0), (880.0, 150.0), (100.0, 120.0)):
        found.add(FERRY, sample(speed, cpu=2.0, wall=8.0, worker=worker))
        found.add(MM2_TUNED, sample(speed / 10))
    return found


def test_medians_and_ratios(result):
    assert result.median(FERRY, "records_per_second") == 880
    assert result.times_faster() == 10
    assert result.cpu_share() == 0.2
    assert result.wall_share() == 0.8
    assert result.limit_share() == 0.8
    assert result.cpu_per_gigabyte(FERRY) == pytest.approx(1.0, rel=1e-3)


def test_what_did_not_run_has_no_numbers(result):
    assert result.times_faster(MM2_DEFAULTS) is None
    assert result.median(MM2_DEFAULTS, "cpu_seconds") is None


def test_targets_of_a_backlog(result):
    judged = {target.what: target for target in judge(result)}
    assert len(judged) == 5
    assert all(target.met for target in judged.values())
    assert judged["MiB of the largest Spark Python worker"].found == 150


def test_a_missed_target_is_shown(result):
    result.samples[FERRY] = [sample(80.0, cpu=9.0, wall=30.0, worker=401.0)]
    judged = judge(result)
    assert len(judged) == 5
    assert not any(target.met for target in judged)
    assert targets_markdown(judged).count("**missed**") == 5


def test_small_amounts_do_not_judge_the_limit_or_the_cpu(result):
    result.shape = result.shape.of_size(40)
    judged = {target.what: target.wanted for target in judge(result)}
    assert judged["start to caught up, times tuned MM2's"] == 1.3
    assert len(judged) == 3


def test_without_spark_no_worker_is_judged(result):
    result.samples[FERRY] = [sample(900.0)]
    assert "MiB of the largest Spark Python worker" not in {target.what for target in judge(result)}


def test_table_has_a_row_per_copier(result):
    lines = markdown([result]).splitlines()
    assert len(lines) == 4
    assert "| MM2 tuned | 88 | 10.0x |" in lines[3]


def test_json_can_be_read_back(result):
    content = json.loads(json.dumps(document([result], {"rounds": 3, "quick": False}, 0.25)))
    assert ", 3 rounds, " in caption(content)
    assert caption(content).endswith("load 0.2 before.")
    assert content["shapes"][0]["ferry_over_mm2"]["mm2-tuned"]["records_per_second"] == 10
    assert len(content["shapes"][0]["samples"]["ferry"]) == 3


def test_every_copier_is_first_once():
    orders = [rotated((FERRY, MM2_TUNED, MM2_DEFAULTS), number) for number in range(3)]
    assert {order[0] for order in orders} == {FERRY, MM2_TUNED, MM2_DEFAULTS}
    assert all(sorted(order) == sorted(orders[0]) for order in orders)


def test_docs_keep_what_stands_around_the_table(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- shapes:begin -->\nold\n<!-- shapes:end -->\nafter\n")
    put_between_markers(page, "shapes", "new\n")
    assert page.read_text() == "before\n<!-- shapes:begin -->\nnew\n<!-- shapes:end -->\nafter\n"
    with pytest.raises(ValueError, match="lacks the markers"):
        put_between_markers(page, "backlog", "new\n")
