"""`docs/properties.md`: the table of all properties, from the registry of ferry.config."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ferry.config.registry import Effect, Property
from ferry.config.registry.clients import CLIENTS
from ferry.config.registry.ferry import FERRY
from ferry.config.registry.flows import CHECKPOINTS, CONNECT, FILTERS, HEARTBEATS, PROPOSED, REMOVED, SOURCE, WITHOUT_EFFECT
from ferry.config.registry.workers import FILE, WORKERS

PAGE = Path("docs/properties.md")

_INTRODUCTION = """\
# Properties

<!-- Written by `python -m tools.docs`: change the registry in include/ferry/config/registry, then run it. -->

Ferry reads MirrorMaker 2's `mm2.properties`, by MM2's rules. Every property that MM2, Kafka Connect and Kafka's clients know is accepted;
what it does here stands in the last column. **honoured**: as in MM2. **no effect**: accepted, with a warning and the reason. **refused**:
loading fails and says what to write instead. A key that is none of these is an error that names the file, the line and the nearest known
key. All errors of a file are told at once.

## The file

Java properties: ISO-8859-1 with `\\uXXXX` escapes; a line that begins with `#` or `!` is a comment, a `#` later in a line is part of the
value; a backslash at the end continues the line and elsewhere escapes, so regular expressions need `\\\\.`; blanks in front of a value are
dropped, blanks behind it are kept (numbers, lists, texts and booleans are trimmed when read, but MM2 takes `A->B.enabled` with a blank
behind `true` for false when it starts flows without heartbeats, and so does Ferry); of several equal keys the last wins, with a warning.

### A connector's file

A file with `source.cluster.alias` or `connector.class` and without `clusters` is read as Kafka Connect reads a connector's. Its keys are
those that stand behind `A->B.` otherwise; `source.cluster.x`, `consumer.x` and `source.consumer.x` (the last wins) and the target's alike
configure the clients; `enabled` is true where it is not set. The file is one flow, and only the connector's part of it:
`MirrorSourceConnector` copies records, topic configs and ACLs and writes offset syncs, `MirrorCheckpointConnector` writes checkpoints and
group offsets, `MirrorHeartbeatConnector` heartbeats. Without `connector.class` it is the whole flow. `rename.topics=false` (KIP-382) means
the IdentityReplicationPolicy.

### MirrorMaker 1's options

A file with `legacy.consumer.config` or `legacy.producer.config` holds the options of the first MirrorMaker, each behind `legacy.`:
`consumer.config`, `producer.config` (paths of client files, from the file's directory on), one of `include`, `whitelist` and `blacklist`,
`num.streams`, `offset.commit.interval.ms`, `abort.on.send.failure`, `message.handler`, `message.handler.args`,
`consumer.rebalance.listener`, `rebalance.listener.args`, and Ferry's own `source.alias` and `target.alias`. `ferry legacy --save` writes
one. Any other property of a flow may stand beside them and wins (`ferry.start`, `replication.factor`, `emit.checkpoints.enabled`). Keys of
the client files that no Kafka client knows are warnings, unless they look like a misspelt one: then they are errors.

## Where a key may stand

| Written as | Holds for |
|---|---|
| `topics` | all flows; MM2 takes only names of the flow tables below, and drops those marked `A->B.` only |
| `A->B.topics` | one flow; wins over the top level |
| `A.bootstrap.servers` | one cluster |
| `A.consumer.x`, `A.producer.x`, `A.admin.x` | one kind of client of one cluster |
| `A->B.consumer.x`, `A->B.source.consumer.x`, `A->B.target.admin.x` | clients of one flow |
| `A->B.producer.override.x` | the producer on the flow's target |

A client of a flow's source takes the first of these that is set, and one of the target likewise (`consumer` stands for any kind of client):

1. `A->B.producer.override.x` (producer on the target only)
2. `A->B.source.consumer.x`
3. `A.consumer.x`
4. `A.x` (only `bootstrap.servers`, `security.protocol`, `ssl.*`, `sasl.*`)
5. the connection named by `A.ferry.airflow.connection` (the same names)
6. `x` at the top level (the same names)
7. `A->B.consumer.x`
8. `A->B.source.cluster.x` (the same names)

So `A.consumer.x` beats `A->B.consumer.x`. That is MM2's order; use `A->B.source.consumer.x` to differ for one flow.

`ferry.*` properties stand at the top level or behind `A->B.`, which wins. Those marked "also `B.`" may stand behind the target's alias too,
between the two.

A flow copies when `A->B.enabled=true`. Pairs that are not enabled write nothing.

## Secrets

`config.providers` names providers, `config.providers.<name>.class` gives their Java class: `EnvVarConfigProvider` (`${env:VARIABLE}`,
parameter `allowlist.pattern`), `FileConfigProvider` (`${file:/path/to.properties:key}`, parameter `allowed.paths`) or
`DirectoryConfigProvider` (`${dir:/path:file}`, parameter `allowed.paths`), all of `org.apache.kafka.common.config.provider`. References in
client properties are resolved in the process that connects, Spark executors included; in others when the file is read. One that cannot be
resolved is an error (MM2 would leave the text as it is). No value of a client property is ever printed.

`A.ferry.airflow.connection = kafka_a` takes host, port, login, password and extra (Kafka's names, or librdkafka's as in Airflow's Kafka
connections) of an Airflow connection. It can be used inside Airflow only.
"""

_SECTIONS: tuple[tuple[str, str, Iterable[Property]], ...] = (
    ("Ferry", "", FERRY),
    ("The whole file", "", FILE),
    ("Flows: records and topics", "", SOURCE),
    ("Flows: checkpoints and groups", "", CHECKPOINTS),
    ("Flows: heartbeats", "", HEARTBEATS),
    (
        "Flows: Java classes",
        (
            "MM2's own classes, with or without their package, or (but for the last) Python classes of your own: `package.module:Class`, "
            "see [Classes of your own](from-mirrormaker.md#classes-of-your-own)."
        ),
        FILTERS,
    ),
    ("Flows: without effect in Ferry", "", WITHOUT_EFFECT),
    ("Flows: inherited from Kafka Connect", "", CONNECT),
    ("Flows: removed from MM2", "", REMOVED),
    ("Flows: proposed for MM2", "Names of the KIPs' texts that no release of MM2 reads.", PROPOSED),
    (
        "Clients",
        (
            "Behind `A.consumer.`, `A.producer.`, `A.admin.` and the flow's forms above; `Where` says which clients have it. "
            "A default is Kafka's; one that is not set is left to Ferry's client libraries."
        ),
        CLIENTS,
    ),
    ("Kafka Connect workers", "At the top level, or behind the target's alias.", WORKERS),
)


def page() -> str:
    """The whole page."""
    return _INTRODUCTION + "".join(_section(*section) for section in _SECTIONS)


def _section(title: str, text: str, properties: Iterable[Property]) -> str:
    rows = "\n".join(_row(known) for known in properties)
    introduction = f"{text}\n\n" if text else ""
    return f"\n## {title}\n\n{introduction}| Property | Kind | Default | Meaning | Where | Effect |\n|---|---|---|---|---|---|\n{rows}\n"


def _row(known: Property) -> str:
    default = "" if known.default is None else f"`{known.default}`" if known.default else "(empty)"
    effect = known.effect.value if known.effect is Effect.HONOURED else f"{known.effect.value}: {known.why.replace('<', '&lt;')}"
    kind = "text" if known.effect is Effect.REFUSED else known.kind.name
    cells = (f"`{known.name}`", kind, default, known.meaning, _where(known), effect)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _where(known: Property) -> str:
    match known.scope.value:
        case "flow only":
            return "`A->B.` only"
        case "flow":
            return "also `B.`" if known.cluster_side else ""
        case "cluster":
            return "`A.` only"
        case "client":
            return "all" if len(known.roles) == 3 else ", ".join(sorted(known.roles))
    return ""
