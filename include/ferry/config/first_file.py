"""The first mm2.properties of a new user, from a few answers (pure). It has comments, and MirrorMaker 2 reads it too."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ferry.config.jaas import MODULES, LoginModule
from ferry.config.properties import entry_line
from ferry.config.providers import PROVIDERS

PASSWORD_MECHANISMS = tuple(mechanism for mechanism in MODULES if mechanism != "OAUTHBEARER")
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
    yield entry_line("clusters", f"{source.alias}, {target.alias}")
    if names := sorted({name for side in (source, target) for name in _PROVIDER.findall(side.password)}):
        yield "# Where ${env:NAME} and ${file:/path:key} are looked up, on Spark's workers too."
        yield entry_line("config.providers", ", ".join(names))
        yield from (entry_line(f"config.providers.{name}.class", PROVIDERS[name]) for name in names)
    for role, side in (("The source, which is only read.", source), ("The target.", target)):
        yield ""
        yield f"# {role}"
        yield from _cluster(side)
    yield ""
    yield f"# The flow. A topic orders of {source.alias} becomes {source.alias}.orders on {target.alias}."
    yield entry_line(f"{flow}.enabled", "true")
    yield "# Names and Java regular expressions, separated by commas."
    yield entry_line(f"{flow}.topics", answers.topics)
    yield "# To keep the names of topics as they are:"
    yield f"# {flow}.replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    yield "# Where the first run begins: earliest, latest or an ISO time."
    yield f"# {flow}.ferry.start = earliest"
    yield "# Committed offsets of consumer groups, translated, for groups without members on the target."
    yield f"# {flow}.sync.group.offsets.enabled = true"
    yield "# When Airflow runs it, as a cron expression in UTC."
    yield entry_line(f"{flow}.ferry.schedule", answers.schedule) if answers.schedule else f"# {flow}.ferry.schedule = */10 * * * *"
    yield ""
    yield f"# Copies of each remote topic, and of Ferry's own topics, among the brokers of {target.alias}."
    yield entry_line("replication.factor", str(answers.replication_factor))
    yield entry_line("ferry.internal.topics.replication.factor", str(answers.replication_factor))
    yield f"# With these two nothing is ever written to {source.alias}: no heartbeats of the other direction."
    yield entry_line(f"{target.alias}->{source.alias}.enabled", "false")
    yield entry_line(f"{target.alias}->{source.alias}.emit.heartbeats.enabled", "false")


def _cluster(side: ClusterAnswers) -> Iterator[str]:
    yield entry_line(f"{side.alias}.bootstrap.servers", side.servers)
    yield entry_line(f"{side.alias}.security.protocol", side.protocol)
    if side.protocol.endswith("SSL") and side.truststore:
        yield entry_line(f"{side.alias}.ssl.truststore.type", "PEM")
        yield entry_line(f"{side.alias}.ssl.truststore.location", side.truststore)
    if side.protocol.startswith("SASL"):
        yield entry_line(f"{side.alias}.sasl.mechanism", side.mechanism)
        module = LoginModule(MODULES[side.mechanism], {"username": side.user, "password": side.password})
        yield entry_line(f"{side.alias}.sasl.jaas.config", module.text)
