from __future__ import annotations

import pytest
from benchmarks.flow import Clusters, Flow
from benchmarks.results import FERRY, FERRY_BESIDE, MM2_DEFAULTS, MM2_TUNED
from benchmarks.run import copiers, parse
from tools.kafka.properties_file import write_properties

from benchmarks import ferry_side, mm2
from ferry.config import load_config

pytestmark = pytest.mark.unit


@pytest.fixture
def flow() -> Flow:
    return Flow(Clusters("127.0.0.1:1", "127.0.0.1:2"), ("benchmark-1.x", "benchmark-2"), 2, "abc")


def test_tuned_mirror_maker_reads_ten_thousand_records_a_poll(flow):
    tuned, defaults = (mm2.properties(flow, "lz4", tuned=tuned, rest_port=8083) for tuned in (True, False))
    assert tuned["fromabc.consumer.max.poll.records"] == "10000"
    assert tuned["toabc.producer.compression.type"] == "lz4"
    assert "fromabc.consumer.max.poll.records" not in defaults
    for settings in (tuned, defaults):
        assert settings["toabc.exactly.once.source.support"] == "enabled"
        assert settings["fromabc.consumer.isolation.level"] == "read_committed"
        assert settings["tasks.max"] == "2"


def test_ferry_reads_its_config(flow, tmp_path):
    path = tmp_path / "mm2.properties"
    write_properties(ferry_side.properties(flow), path)
    loaded = load_config(path).flow(flow.name)
    assert (loaded.source.alias, loaded.target.alias) == ("fromabc", "toabc")


def test_ferry_reads_mirror_makers_config_too(flow, tmp_path):
    path = tmp_path / "mm2.properties"
    write_properties(mm2.properties(flow, "lz4", tuned=True, rest_port=8083), path)
    assert load_config(path).flow(flow.name).name == flow.name


def test_topics_are_escaped(flow, tmp_path):
    path = tmp_path / "mm2.properties"
    write_properties(flow.settings(), path)
    assert r"topics = benchmark\\-1\\.x,benchmark\\-2" in path.read_text()


def test_remote_names_carry_the_rounds_alias(flow):
    assert flow.remote_partitions == [(f"fromabc.{topic}", number) for topic in flow.topics for number in (0, 1)]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], (FERRY, MM2_TUNED, MM2_DEFAULTS)),
        (["--backlog"], (FERRY, MM2_TUNED)),
        (["--without-defaults"], (FERRY, MM2_TUNED)),
        (["--only", FERRY], (FERRY,)),
    ],
)
def test_who_is_measured(arguments, expected):
    assert copiers(parse(arguments)) == expected


def test_the_ferry_of_another_checkout_runs_its_own_code(flow, tmp_path, monkeypatch):
    ferry = tmp_path / "other" / ".venv" / "bin" / "ferry"
    ferry.parent.mkdir(parents=True)
    ferry.touch()
    monkeypatch.setenv("PYTHONPATH", "include")
    options = parse(["--beside", str(tmp_path / "other")])
    assert copiers(options) == (FERRY, FERRY_BESIDE)
    job = ferry_side.job(flow, tmp_path, ferry=options.beside)
    assert job.command[0] == str(ferry)
    assert "PYTHONPATH" not in job.environment


def test_another_checkout_must_be_set_up(tmp_path, capsys):
    with pytest.raises(SystemExit):
        parse(["--beside", str(tmp_path)])
    assert "run `make setup`" in capsys.readouterr().err
