"""Whole files: what is read, and every problem at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ferry.config import ClientRole, FerryConfig
from ferry.errors import ArgumentError, ConfigError, ExitCode

pytestmark = pytest.mark.unit

Load = Callable[..., FerryConfig]
Problems = Callable[..., list[str]]


def test_two_clusters_and_a_flow(load: Load) -> None:
    config = load()
    assert list(config.clusters) == ["A", "B"]
    assert [flow.name for flow in config.flows] == ["A->B"]
    assert config.flow("A->B") is config.flows[0]
    assert (config.flows[0].source.bootstrap, config.flows[0].target.bootstrap) == ("a:9092", "b:9092")
    assert config.warnings == ()
    assert isinstance(hash(config), int)


def test_unknown_flow_names_the_known(load: Load) -> None:
    config = load("B->A.enabled=true\n")
    with pytest.raises(ArgumentError, match=r"no enabled flow A->b; enabled flows: A->B, B->A; did you mean A->B\?$"):
        config.flow("A->b")
    with pytest.raises(ArgumentError, match=r"no enabled flow x; enabled flows: A->B, B->A$"):
        config.flow("x")


def test_all_problems_are_reported_in_the_order_of_the_file(problems: Problems) -> None:
    found = problems(
        """\
A->B.topcis = orders
A->B.tasks.max = 0
B.sasl.jaas.confg = x
A.consumr.client.id = x
ferry.lanes = many
ferry.lane = 3
transforms = mask
A.ssl.engine.factory.class = com.example.Engine
A->B.topics.whitelist = x
C.bootstrap.servers = c:9092
A->C.enabled = true
a.producer.client.id = x
A->A.enabled = true
A->B.groups = a, (?m)x
A->B.topic.filter.class = com.example.Filter
replication.policy.separator = #
sync.topic.configs.enabled = yes
replication.factor = 0
offset-syncs.topic.location = src
A->B.ferry.schedule = @daily
A->B.ferry.start = yesterday
A->B.topics.exclude = a,,b
"""
    )
    told = {
        "5: A->B.topcis": "did you mean A->B.topics?",
        "6: A->B.tasks.max": "'0'",
        "7: B.sasl.jaas.confg": "did you mean B.sasl.jaas.config?",
        "8: A.consumr.client.id": "did you mean A.consumer.client.id?",
        "9: ferry.lanes": "from 1 to 1000, not 'many'",
        "10: ferry.lane": "did you mean ferry.lanes?",
        "11: transforms": "remove the key",
        "12: A.ssl.engine.factory.class": "cannot run",
        "13: A->B.topics.whitelist": "write topics",
        "15: A->C.enabled": "did you mean A->B.enabled?",
        "16: a.producer.client.id": "did you mean A.producer.client.id?",
        "17: A->A.enabled": "from a cluster to itself",
        "18: A->B.groups": "'(?m)x' uses (?m)",
        "19: A->B.topic.filter.class": "not 'com.example.Filter'",
        "20: replication.policy.separator": "not '#'",
        "21: sync.topic.configs.enabled": "true or false, not 'yes'",
        "22: replication.factor": "not '0'",
        "23: offset-syncs.topic.location": "source or target, not 'src'",
        "24: A->B.ferry.schedule": "not '@daily'",
        "25: A->B.ferry.start": "not 'yesterday'",
        "26: A->B.topics.exclude": "not 'a,,b'",
    }
    assert [": ".join(line.split(": ")[:2]) for line in found] == list(told)
    assert [(line, fact) for line, fact in zip(found, told.values(), strict=True) if fact not in line] == []


def test_a_problem_of_clusters_and_flows_is_reported_once(problems: Problems) -> None:
    assert problems("B->A.enabled=true\nsecurity.protocol=TLS\n") == [
        "6: security.protocol: must be PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL, not 'TLS'",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "clusters: is missing: name the clusters, for example clusters = A, B"),
        ("clusters =\n", "1: clusters: is empty: name the clusters, for example clusters = A, B"),
        ("clusters = A,,B\n", "1: clusters: must be a list separated by commas, without empty elements"),
    ],
)
def test_without_clusters_nothing_else_is_checked(problems: Problems, text: str, problem: str) -> None:
    assert problems(text + "x.y = 1\n", whole=True) == [problem]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("clusters=A\nA.bootstrap.servers=a:1\n", "No source->target replication flows: clusters names one cluster only, a flow needs two"),
        (
            "clusters=A,B\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\n",
            "No source->target replication flows: add A->B.enabled=true",
        ),
        ("clusters=A,B\nA.bootstrap.servers=a:1\nA->B.enabled=true\n", "B.bootstrap.servers: is missing: add the cluster's servers,"),
        (
            "clusters=A,B\nA.bootstrap.servers=a:1, a:2\nB.bootstrap.servers=b:2, A:2\nA->B.enabled=true\n",
            "3: B.bootstrap.servers: has a server of cluster A: a flow must not copy a cluster to itself",
        ),
        (
            "clusters=A,B\nbootstrap.servers=a:1\nA->B.enabled=true\n",
            "2: bootstrap.servers: has a server of cluster A: a flow must not copy a cluster to itself",
        ),
        (
            "clusters=A,B\nA.bootstrap.servers=a\nB.bootstrap.servers=b:1\nA->B.enabled=true\n",
            "2: A.bootstrap.servers: must be host:port pairs",
        ),
        ("clusters=A!,B\nA!.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nA!->B.enabled=true\n", "1: clusters: alias A! becomes part of"),
    ],
)
def test_impossible_clusters_and_flows(problems: Problems, text: str, problem: str) -> None:
    found = problems(text, whole=True)
    assert len(found) == 1
    assert found[0].startswith(problem)


def test_a_flow_with_blanks_is_explained(problems: Problems) -> None:
    (found,) = problems("A -> B.topics = x\n")
    assert found.startswith("5: A: is not a known property: a key ends at its first blank")
    assert "A->B.<property>" in found


def test_comments_inside_lines_are_explained(problems: Problems, load: Load) -> None:
    (found,) = problems("sync.topic.acls.enabled = false # no ACLs\n")
    assert found.startswith("5: sync.topic.acls.enabled: must be true or false, not 'false # no ACLs' (a # ")
    assert problems("A->B.topics = .* # all\n") == [
        "5: A->B.topics: holds a #, which is part of the value: a comment needs a line of its own"
    ]
    (warning,) = load("A->B.groups = .* # all\n").warnings
    assert "5: A->B.groups: holds a #" in warning


@pytest.mark.parametrize(
    ("line", "warning"),
    [
        ("A->B.topics = a\nA->B.topics = b", "5: A->B.topics: is given again in line 6, which wins"),
        ("A->B.topics = a, b, a", "5: A->B.topics: holds an element twice"),
        (
            "use.defaults.from = source",
            "5: use.defaults.from: has no effect: MM2 drops it at the top level: write <source>-><target>.use.def",
        ),
        (
            "consumer.client.id = x",
            "5: consumer.client.id: has no effect: MM2 drops it at the top level: write <cluster>.consumer.client.id",
        ),
        ("request.timeout.ms = 1", "5: request.timeout.ms: has no effect: MM2 drops it at the top level: write <cluster>.consumer.request"),
        ("A.client.id = x", "5: A.client.id: has no effect: MM2's clients drop it here: write A.consumer.client.id"),
        ("B.replication.factor = 3", "5: B.replication.factor: has no effect: it belongs to a flow: write it at the top level or after"),
        (
            "A->B.security.protocol = SSL",
            "5: A->B.security.protocol: has no effect: MM2 drops it here: write it for a cluster, as A.security",
        ),
        (
            "A->B.auto.offset.reset = latest",
            "5: A->B.auto.offset.reset: has no effect: MM2 drops it here: write it for a cluster, as A.consumer.auto",
        ),
        ("A->B.linger.ms = 5", "5: A->B.linger.ms: has no effect: MM2 drops it here: write it for a cluster, as B.producer.linger.ms"),
        (
            "B.offset.storage.replication.factor=1",
            "5: B.offset.storage.replication.factor: has no effect in Ferry: Ferry has no Connect worker",
        ),
        (
            "refresh.groups.interval.seconds=5",
            "5: refresh.groups.interval.seconds: has no effect in Ferry: every run does this",
        ),
        (
            "A->B.topic.creation.enable.x = 1",
            "5: A->B.topic.creation.enable.x: has no effect in Ferry: Ferry does not run on Kafka Connect",
        ),
        (
            "sync.topic.acls.enabled = false ",
            "5: sync.topic.acls.enabled: has a blank ",
        ),
        ("A.sasl.mechanism = PLAIN", "5: A.sasl.mechanism: has no effect with security.protocol=PLAINTEXT"),
    ],
)
def test_an_entry_that_is_read_otherwise_than_it_looks_gives_a_warning(load: Load, line: str, warning: str) -> None:
    (found,) = load(line + "\n").warnings
    assert found.partition("mm2.properties:")[2].startswith(warning)


def test_refused_properties_may_be_empty(load: Load) -> None:
    assert load("transforms =\n").warnings == ()


def test_aliases_with_dots_and_one_inside_another(load: Load) -> None:
    config = load(
        "clusters = us, us.west\nus.bootstrap.servers=a:1\nus.west.bootstrap.servers=b:1\nus->us.west.enabled=true\n"
        "us.west.consumer.client.id=w\nus->us.west.topics=x\n",
        whole=True,
    )
    assert config.flow("us->us.west").topics == ("x",)
    assert config.clusters["us.west"].kafka_python(ClientRole.CONSUMER)["client_id"] == "w"


def test_flows_may_differ_from_their_clusters(load: Load) -> None:
    config = load("A->B.source.consumer.client.id=flow\nA.consumer.client.id=cluster\n")
    assert config.flow("A->B").source.kafka_python(ClientRole.CONSUMER)["client_id"] == "flow"
    assert config.clusters["A"].kafka_python(ClientRole.CONSUMER)["client_id"] == "cluster"


def test_exit_code_is_bad_input(load: Load) -> None:
    with pytest.raises(ConfigError) as caught:
        load("topics.regex=1\n")
    assert caught.value.exit_code is ExitCode.BAD_INPUT
