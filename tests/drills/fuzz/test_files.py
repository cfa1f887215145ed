"""Damaged files and properties are read, or refused with their name; no value of a password shows in a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.drills.fuzz.damage import EXAMPLES, damaged, fuzzed
from tests.policy.expressions import ACCEPTED

from ferry.config import ClientRole, load_config
from ferry.config.jaas import parse_jaas
from ferry.config.properties import parse_properties
from ferry.errors import ArgumentError, ConfigError
from ferry.migration.positions import read_seed_file
from ferry.policy.java_patterns import java_pattern

pytestmark = pytest.mark.unit

with_files = settings(
    fuzzed, max_examples=max(20, EXAMPLES // 3), suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)

MM2 = rb"""# both ways
clusters = A, B
A.bootstrap.servers = one:9092,\
    two:9092
B.bootstrap.servers = three:9092
A->B.enabled = true
A->B.topics = orders.*, pay\u002dments
B->A.enabled = false
replication.factor = 3
sync.group.offsets.enabled = true
emit.checkpoints.interval.seconds = 5
B.security.protocol = SASL_PLAINTEXT
B.sasl.mechanism = PLAIN
B.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hunter2";
A->B.ferry.lanes = 4
ferry.start = 2026-01-01T00:00:00Z
"""
CONNECTOR = rb"""name = c
connector.class = org.apache.kafka.connect.mirror.MirrorSourceConnector
source.cluster.alias = A
target.cluster.alias = B
source.cluster.bootstrap.servers = one:9092
target.cluster.bootstrap.servers = two:9092
topics = t.*
rename.topics = false
"""
LEGACY = rb"""legacy.consumer.config = consumer.properties
legacy.producer.config = producer.properties
legacy.include = orders|pay.*
legacy.num.streams = 3
legacy.offset.commit.interval.ms = 5000
"""
JAAS = b"""org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password='hun\\164er2'; /* end */"""
SEEDS = b'topic,partition,position\nt,0,5\nt,1,17\n"a,b",2,0\n'
PASSWORD = "hun"
PROVIDERS = "org.apache.kafka.common.config.provider"
STORES = sorted((Path(__file__).parents[2] / "config" / "stores").glob("*/*.*[s2]"))
# Beyond this a message is not worth printing; Java's own are shorter.
READABLE = 4_000


def refused(problem: Exception, name: str) -> None:
    """It names what it is about, at a length that people read, without the password."""
    assert name in str(problem)
    assert PASSWORD not in str(problem)
    assert len(str(problem)) < READABLE


@with_files
@given(data=damaged(st.sampled_from([MM2, CONNECTOR, LEGACY])))
def test_config_files(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_bytes(data)
    (tmp_path / "consumer.properties").write_bytes(b"bootstrap.servers=one:9092\ngroup.id=g\n")
    (tmp_path / "producer.properties").write_bytes(b"bootstrap.servers=two:9092\nacks=all\n")
    try:
        load_config(path)
    except (ConfigError, ArgumentError) as problem:
        refused(problem, "mm2.properties")


@pytest.mark.parametrize(
    "line",
    [
        "A.security.protocol = SSL\nA.ssl.truststore.location = a\0b\nA.ssl.truststore.type = PEM",
        f"config.providers = f\nconfig.providers.f.class = {PROVIDERS}.FileConfigProvider\nx = ${{f:a\0b:k}}",
        f"config.providers = d\nconfig.providers.d.class = {PROVIDERS}.DirectoryConfigProvider\nx = ${{d:/tmp:a\0b}}",
    ],
    ids=["store", "file provider", "directory provider"],
)
def test_paths_with_a_nul(line: str, tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_bytes(MM2 + line.encode() + b"\n")
    try:
        load_config(path)
    except ConfigError as problem:
        refused(problem, "mm2.properties")


@pytest.mark.parametrize(
    "key", ["sasl.mechanism", "security.protocol", "client.id", "ferry.lanes", "bootstrap.servers", "no.such.property"]
)
def test_a_line_that_goes_on_with_a_password(key: str, tmp_path: Path) -> None:
    """One backslash too many, and what a message quotes holds the next line."""
    path = tmp_path / "mm2.properties"
    path.write_bytes(MM2.replace(b"B.sasl.mechanism = PLAIN\n", f"B->A.{key} = x\nB.{key} = PLAI\\\n".encode()))
    try:
        load_config(path)
    except ConfigError as problem:
        refused(problem, "mm2.properties")


@with_files
@given(
    store=st.sampled_from(STORES).flatmap(lambda path: st.tuples(st.just(path), damaged(st.just(path.read_bytes())))), trusted=st.booleans()
)
def test_stores(store: tuple[Path, bytes], trusted: bool, tmp_path: Path) -> None:
    """Their passwords are given or not: without that of a JKS store its digest is not looked at."""
    path, kind = tmp_path / "store", "truststore" if trusted else "keystore"
    path.write_bytes(store[1])
    opened = "" if trusted and store[0].suffix == ".jks" else f"A.ssl.{kind}.password = changeit\n"
    lines = f"A.security.protocol = SSL\nA.ssl.{kind}.location = {path}\n{opened}A.ssl.key.password = keysecret\n"
    (tmp_path / "mm2.properties").write_bytes(MM2 + lines.encode())
    cluster = load_config(tmp_path / "mm2.properties").clusters["A"]
    try:
        cluster.kafka_python(ClientRole.ADMIN)
    except ConfigError as problem:
        refused(problem, f"A.ssl.{kind}.location")


@fuzzed
@given(data=damaged(st.just(MM2)) | st.binary(max_size=200))
def test_properties(data: bytes) -> None:
    try:
        parse_properties(Path("f"), data)
    except ConfigError:
        return


@fuzzed
@given(text=damaged(st.just(JAAS)).map(lambda data: data.decode("latin-1")) | st.text(max_size=60))
def test_login_modules(text: str) -> None:
    try:
        found = parse_jaas(text)
    except ValueError as problem:
        refused(problem, "")
        return
    assert found.java_class


@with_files
@given(data=damaged(st.just(SEEDS)))
def test_seed_files(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "seeds.csv"
    path.write_bytes(data)
    try:
        found = read_seed_file(path)
    except ArgumentError as problem:
        refused(problem, "seeds.csv")
        return
    assert found.positions


@pytest.mark.parametrize("line", ["t,0,\0", "t,0," + "5" * 200_000, '"t' + "x" * 200_000, "t,0," + "9" * 30, "t,-1,5", "t,0,-5", "t,٣,5"])
def test_seed_files_that_no_one_means(line: str, tmp_path: Path) -> None:
    path = tmp_path / "seeds.csv"
    path.write_text(f"topic,partition,position\n{line}\n", encoding="utf-8")
    with pytest.raises(ArgumentError, match=r"seeds\.csv"):
        read_seed_file(path)


@fuzzed
@given(
    expression=damaged(st.sampled_from([text.encode() for text in ACCEPTED])).map(lambda data: data.decode("latin-1"))
    | st.text("()[]{}\\|*+?.^$&-:<=!,0aZdDpQE#\n\x85", max_size=30),
    key=st.sampled_from(["topics", "groups"]),
)
def test_java_expressions(expression: str, key: str) -> None:
    try:
        java_pattern([expression], key)
    except ConfigError as problem:
        refused(problem, key)


def test_deep_and_long_expressions_are_refused_or_read() -> None:
    for expression in (
        "(" * 5_000 + ")" * 5_000,
        "[" * 5_000 + "]" * 5_000,
        "a" * 100_000,
        "(a|b)" * 3_000,
        "a{999999999}",
        "(?i)" * 3_000,
    ):
        try:
            java_pattern([expression], "topics")
        except ConfigError:
            continue
