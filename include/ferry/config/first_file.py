"""The first mm2.properties of a new user, from a few answers (pure). It has comments, and MirrorMaker 2 reads it too."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import javaproperties

from ferry.config.jaas import MODULES, LoginModule
from ferry.config.providers import PROVIDERS

PASSWORD_MECHANISMS = tuple(mechanism for mechanism in MODULES if mechanism != "OAUTHBEARER")
_ESCAPE = re.compile(r"\\([\\:=#!])")
_PROVIDER = re.compile(r"\$\{(\w+):")


@dataclass(frozen=True)
class ClusterAnswers:
    """One cluster. `password`: a reference, or the password itself if the user chose that; `truststore`: a PEM file."""

    alias: str
    servers: str
    protocol: str = "PLAINTEXT"
    mechanism: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    truststore: str = ""


@dataclass(frozen=True)
class FirstFile:
    """All answers. `replication_factor`: of remote topics; `schedule`: a cron expression, or empty."""

    source: ClusterAnswers
    target: ClusterAnswers
    topics: str = ".*"
    replication_factor: int = 3
    schedule: str = ""

    @property
    def flow(self) -> str:
        return f"{self.source.alias}->{self.target.alias}"


def first_file(answers: FirstFile) -> str:
    """The file, in ASCII. Declares each provider to which a password refers."""
    return "".join(f"{line}\n" for line in _lines(answers))


def _lines(answers: FirstFile) -> Iterator[str]:
    source, target, flow = answers.source, answers.target, answers.flow
    yield f"# Copies topics from {source.alias} to {target.alias}. MirrorMaker 2 reads the same file."
    yield "# Every key: docs/properties.md. Examine it: ferry doctor. What a run would do: ferry plan."
    yield _set("clusters", f"{source.alias}, {target.alias}")
    yield from _providers((source, target))
    for role, side in (("The source, which is only read.", source), ("The target.", target)):
        yield ""
        yield f"# {role}"
        yield from _cluster(side)
    yield ""
    yield f"# The flow. A topic orders of {source.alias} becomes {source.alias}.orders on {target.alias}."
    yield _set(f"{flow}.enabled", "true")
    yield "# Names and Java regular expressions, separated by commas."
    yield _set(f"{flow}.topics", answers.topics)
    yield "# To keep the names of topics as they are:"
    yield f"# {flow}.replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    yield "# Where a partition begins that was never copied: earliest, latest or an ISO time."
    yield f"# {flow}.ferry.start = earliest"
    yield "# Committed offsets of consumer groups, translated, for groups without members on the target."
    yield f"# {flow}.sync.group.offsets.enabled = true"
    yield "# When Airflow runs it, as a cron expression in UTC."
    yield _set(f"{flow}.ferry.schedule", answers.schedule) if answers.schedule else f"# {flow}.ferry.schedule = */10 * * * *"
    yield ""
    yield f"# Copies of each remote topic, and of Ferry's own topics, among the brokers of {target.alias}."
    yield _set("replication.factor", str(answers.replication_factor))
    yield _set("ferry.internal.topics.replication.factor", str(answers.replication_factor))
    yield f"# With these two nothing is ever written to {source.alias}: no heartbeats of the other direction."
    yield _set(f"{target.alias}->{source.alias}.enabled", "false")
    yield _set(f"{target.alias}->{source.alias}.emit.heartbeats.enabled", "false")


def _providers(sides: Iterable[ClusterAnswers]) -> Iterator[str]:
    names = sorted({name for side in sides for name in _PROVIDER.findall(side.password)})
    if names:
        yield "# Where ${env:NAME} and ${file:/path:key} are looked up, on Spark's workers too."
        yield _set("config.providers", ", ".join(names))
        yield from (_set(f"config.providers.{name}.class", PROVIDERS[name]) for name in names)


def _cluster(side: ClusterAnswers) -> Iterator[str]:
    yield _set(f"{side.alias}.bootstrap.servers", side.servers)
    yield _set(f"{side.alias}.security.protocol", side.protocol)
    if side.protocol.endswith("SSL") and side.truststore:
        yield _set(f"{side.alias}.ssl.truststore.type", "PEM")
        yield _set(f"{side.alias}.ssl.truststore.location", side.truststore)
    if side.protocol.startswith("SASL"):
        yield _set(f"{side.alias}.sasl.mechanism", side.mechanism)
        module = LoginModule(MODULES[side.mechanism], {"username": side.user, "password": side.password})
        yield _set(f"{side.alias}.sasl.jaas.config", module.text)


def _set(key: str, value: str) -> str:
    # javaproperties escapes `:`, `=`, `#` and `!` too, which is not necessary in values and makes servers hard to read.
    escaped = _ESCAPE.sub(lambda found: found[0] if found[1] == "\\" else found[1], javaproperties.escape(value))
    return f"{key} = {escaped}"
