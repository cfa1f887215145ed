"""The file that `ferry init` writes says what was answered, and loads without a warning."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.config import load_config
from ferry.config.first_file import ClusterAnswers, FirstFile, first_file

pytestmark = pytest.mark.unit

A, B = ClusterAnswers("A", "a1:9092, a2:9092"), ClusterAnswers("B", "b:9092")
PRINTABLE = st.text(st.characters(blacklist_categories=["C", "Zl", "Zp"]), min_size=1, max_size=30)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("first") / "mm2.properties"


def test_the_defaults(path: Path) -> None:
    path.write_text(first_file(FirstFile(A, B)), encoding="ascii")
    loaded = load_config(path)
    (flow,) = loaded.flows
    assert loaded.warnings == ()
    assert (flow.name, flow.topics, flow.schedule, flow.replication_factor, flow.reverse_heartbeat) == ("A->B", (".*",), None, 3, "off")
    assert flow.source.bootstrap == "a1:9092, a2:9092"


def test_what_is_commented_out_can_be_switched_on(path: Path) -> None:
    text = first_file(FirstFile(A, B))
    commented = [line.removeprefix("# ") for line in text.splitlines() if line.startswith("# A->B.")]
    path.write_text(text + "\n".join(commented) + "\n", encoding="ascii")
    loaded = load_config(path)
    (flow,) = loaded.flows
    assert len(commented) == 4
    assert (loaded.warnings, flow.schedule, flow.start, flow.mirroring.sync_group_offsets_enabled) == ((), "*/10 * * * *", "earliest", True)


@given(user=PRINTABLE, password=PRINTABLE, mechanism=st.sampled_from(["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]))
def test_a_login_is_read_back_unchanged(path: Path, user: str, password: str, mechanism: str) -> None:
    side = ClusterAnswers("B", "b:9092", "SASL_PLAINTEXT", mechanism, user, password)
    path.write_text(first_file(FirstFile(A, side)), encoding="ascii")
    settings = load_config(path).flows[0].target.librdkafka()
    assert (settings["sasl.username"], settings["sasl.password"], settings["sasl.mechanism"]) == (user, password, mechanism)


def test_references_are_looked_up_where_they_are_used(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secrets.properties").write_text("password = in a file\n")
    source = ClusterAnswers("A", "a:9092", "SASL_PLAINTEXT", "PLAIN", "me", "${env:FERRY_TEST_PASSWORD}")
    target = ClusterAnswers("B", "b:9092", "SASL_PLAINTEXT", "PLAIN", "me", f"${{file:{tmp_path}/secrets.properties:password}}")
    answers = FirstFile(source, target, "orders, pay.*", 2, "0 6 * * *")
    path.write_text(first_file(answers), encoding="ascii")
    monkeypatch.setenv("FERRY_TEST_PASSWORD", "in the environment")
    loaded = load_config(path)
    (flow,) = loaded.flows
    assert (loaded.warnings, flow.topics, flow.schedule, flow.replication_factor) == ((), ("orders", "pay.*"), "0 6 * * *", 2)
    assert flow.source.librdkafka()["sasl.password"] == "in the environment"
    assert flow.target.librdkafka()["sasl.password"] == "in a file"


def test_a_password_is_not_shown() -> None:
    side = ClusterAnswers("B", "b:9092", "SASL_PLAINTEXT", "PLAIN", "me", "hunter2")
    assert "hunter2" not in repr(FirstFile(A, side))
