"""`docs/properties.md`: the table of all properties, from the registry of ferry.config."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ferry.config.registry.clients import CLIENTS
from ferry.config.registry.ferry import FERRY
from ferry.config.registry.flows import CHECKPOINTS, CONNECT, FILTERS, HEARTBEATS, PROPOSED, REMOVED, SOURCE, WITHOUT_EFFECT
from ferry.config.registry.property import Effect, Property
from ferry.config.registry.schemas import REGISTRIES, SCHEMAS
from ferry.config.registry.workers import FILE, WORKERS

PAGE = Path("docs/properties.md")

_INTRODUCTION = """\
# Properties

<!-- Written by `python -m tools.docs`: change the registry in include/ferry/config/registry, then run it. -->

Ferry reads MirrorMaker 2's `mm2.properties` by MM2's rules. It knows every property of MM2, Kafka Connect and Kafka's clients, and has
properties of its own. The last column says what Ferry does with a property:

- **honoured**: Ferry uses the property. A property of MM2 means the same as in MM2, unless its row says otherwise.
- **no effect**: Ferry accepts the property, and warns with the reason.
- **read as**: an older name. Ferry reads it as the property that replaced it, and warns. If the file sets both, the new one wins.
- **refused**: Ferry does not load the file, and says what to write instead.

MM2 ignores keys that it does not know. Ferry warns of such a key, with its line. There are four exceptions, because somebody expects an
effect on the copy. Ferry refuses a key

- that is very similar to a key with an effect (`topcis`, `us-wst.security.protocol`), and asks whether you meant that one;
- of a flow between clusters that the file does not have;
- with a word like `topics`, `groups`, `whitelist`, `regex`, `filter` or `policy` in it (`A->B.topics.regex`);
- that begins with `ferry.`.

Ferry reports all errors of a file together.

## The file

The file is a Java properties file:

- Its encoding is ISO-8859-1, with `\\uXXXX` escapes.
- A line that begins with `#` or `!` is a comment. A `#` later in a line is part of the value.
- A backslash at the end of a line continues the line. Elsewhere it escapes the next character, so regular expressions need `\\\\.`.
- Blanks before a value are dropped; blanks after it are kept. Ferry trims numbers, lists, texts and booleans when it reads them. There
  is one exception, as in MM2: if the flow has `emit.heartbeats.enabled=false`, a blank after `true` makes `A->B.enabled` false.
- If a key occurs several times, the last one wins, with a warning.

### A connector's file

Ferry reads a file with `source.cluster.alias` or `connector.class` as Kafka Connect reads the file of a connector. If the file also holds
`clusters`, this is so only with `source.cluster.bootstrap.servers` or `target.cluster.bootstrap.servers`; `clusters` then has no effect.


- Its keys are those that follow `A->B.` in `mm2.properties`.
- `source.cluster.x`, `consumer.x` and `source.consumer.x` configure the source's clients; the last of these wins. The target's keys work
  the same way.
- `enabled` is true unless the file sets it.
- The file is one flow. Ferry does only the work that the connector does in MM2. `MirrorSourceConnector` copies records, topic configs and
  ACLs, and writes offset syncs. `MirrorCheckpointConnector` writes checkpoints and group offsets. `MirrorHeartbeatConnector` writes
  heartbeats. A file without `connector.class` is a whole flow.
- `rename.topics=false` (KIP-382) means the IdentityReplicationPolicy.

### MirrorMaker 1's options

A file with `legacy.consumer.config` or `legacy.producer.config` holds the options of the first MirrorMaker, each after `legacy.`:

- `consumer.config` and `producer.config` are the paths of client files, relative to the directory of this file.
- Exactly one of `include`, `whitelist` and `blacklist` is required.
- The others are `num.streams`, `offset.commit.interval.ms`, `abort.on.send.failure`, `message.handler`, `message.handler.args`,
  `consumer.rebalance.listener`, `rebalance.listener.args`, and Ferry's own `source.alias` and `target.alias`.

`ferry legacy --save` writes such a file. The file may also set other properties of a flow, for example `ferry.start`,
`replication.factor` or `emit.checkpoints.enabled`: they replace what `ferry legacy` sets by default. If a client file holds a key that
no Kafka client knows, Ferry warns. If the key looks like a misspelt known key, that is an error.

## Where you may write a key

| Written as | Holds for |
|---|---|
| `topics` | all flows. At the top level MM2 reads only names of the tables "Flows: …" below, and ignores those marked "`A->B.` only" |
| `A->B.topics` | one flow; wins over the top level |
| `A.bootstrap.servers` | one cluster |
| `A.consumer.x`, `A.producer.x`, `A.admin.x` | one kind of client of one cluster |
| `A->B.consumer.x`, `A->B.source.consumer.x`, `A->B.target.admin.x` | clients of one flow |
| `A->B.producer.override.x` | the producer on the flow's target |

A client of a flow's source uses the first of these keys that is set. In this list, `consumer` can be any of `consumer`,
`producer` and `admin`. For the target the order is the same.

1. `A->B.producer.override.x` (producer on the target only)
2. `A->B.source.consumer.x`
3. `A.consumer.x`
4. `A.x` (only `bootstrap.servers`, `security.protocol`, `ssl.*`, `sasl.*`)
5. the connection that `A.ferry.airflow.connection` names (the same names as in 4)
6. `x` at the top level (the same names)
7. `A->B.consumer.x`
8. `A->B.source.cluster.x` (the same names)

So `A.consumer.x` wins over `A->B.consumer.x`. This is MM2's order. To set a value for one flow only, use `A->B.source.consumer.x`.

Write a `ferry.*` property at the top level or after `A->B.`; the second wins. You may also write a property marked "also `B.`" after the
target's alias. That wins over the top level, and `A->B.` wins over both.

Ferry runs the flow `A->B` if `A->B.enabled=true`. For a pair that is not enabled it writes at most a
[heartbeat](from-mirrormaker.md#heartbeats-checkpoints-offset-syncs).

## Secrets

`config.providers` names config providers. `config.providers.<name>.class` gives the Java class of each, all from
`org.apache.kafka.common.config.provider`:

- `EnvVarConfigProvider`: `${env:VARIABLE}`. Its parameter `allowlist.pattern` limits the variables.
- `FileConfigProvider`: `${file:/path/to.properties:key}`. Its parameter `allowed.paths` limits the files.
- `DirectoryConfigProvider`: `${dir:/path:file}`. Its parameter `allowed.paths` limits the directories.

Ferry resolves a reference in a client property in the process that connects, for example on a Spark executor. It resolves all other
references when it reads the file. A reference that cannot be resolved is an error; MM2 would use the text as it is. Ferry never prints the
value of a client property.

`A.ferry.airflow.connection = kafka_a` takes host, port, login, password and extra of an Airflow connection. The extra uses Kafka's names,
or librdkafka's names as in Airflow's Kafka connections. This works inside Airflow only.
"""

_SECTIONS: tuple[tuple[str, str, Iterable[Property]], ...] = (
    ("Ferry", "", FERRY),
    ("Flows: schemas", "", SCHEMAS),
    (
        "Schema registries",
        (
            "After a cluster's alias: `A.schema.registry.url`. The rows with `ssl.` and `sasl.oauthbearer.` mean the same as for a Kafka "
            "client. A registry inherits nothing from its cluster."
        ),
        REGISTRIES,
    ),
    ("The whole file", "", FILE),
    ("Flows: records and topics", "", SOURCE),
    ("Flows: checkpoints and groups", "", CHECKPOINTS),
    ("Flows: heartbeats", "", HEARTBEATS),
    (
        "Flows: Java classes",
        (
            "MM2's own classes, with or without their package. All but the last may also be Python classes of your own, as "
            "`package.module:Class`: see [Classes of your own](from-mirrormaker.md#classes-of-your-own)."
        ),
        FILTERS,
    ),
    ("Flows: without effect in Ferry", "", WITHOUT_EFFECT),
    ("Flows: inherited from Kafka Connect", "", CONNECT),
    ("Flows: removed from MM2", "", REMOVED),
    ("Flows: proposed for MM2", "Names from the texts of KIPs. No release of MM2 reads them.", PROPOSED),
    (
        "Clients",
        (
            "After `A.consumer.`, `A.producer.`, `A.admin.` and the flow's forms above. `Where` says which clients have the property. "
            "The column Default shows Kafka's default. If the file does not set a property, Ferry's client library may use another value."
        ),
        CLIENTS,
    ),
    ("Kafka Connect workers", "At the top level, or after the target's alias.", WORKERS),
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
    if known.effect is Effect.RENAMED:
        effect = f"read as `{known.successor}`: {known.why}"
    kind = "text" if known.effect is Effect.REFUSED else known.kind.name
    cells = (f"`{known.name}`", kind, default, known.meaning, _where(known), effect)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _where(known: Property) -> str:
    match known.scope.value:
        case "flow only":
            return "`A->B.` only"
        case "flow":
            return "also `B.`" if known.of_target else ""
        case "cluster":
            return "`A.` only"
        case "client":
            return "all" if len(known.roles) == 3 else ", ".join(sorted(known.roles))
    return ""
