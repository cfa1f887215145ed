"""Ferry's own properties."""

from __future__ import annotations

from ferry.config.registry import kinds
from ferry.config.registry.kinds import Kind
from ferry.config.registry.property import Property, Scope


def _ferry(name: str, kind: Kind, default: str | None, meaning: str, cluster_side: str | None = None) -> Property:
    return Property(name, kind, default, meaning, Scope.FLOW, cluster_side=cluster_side)


FERRY: tuple[Property, ...] = (
    _ferry(
        "ferry.start",
        kinds.START,
        None,
        "where a partition that was never copied begins: earliest, latest, or the first record at or after an ISO time "
        "(UTC where it has no offset); when not set, auto.offset.reset of the source's consumer, else earliest",
    ),
    _ferry("ferry.schedule", kinds.CRON, None, "cron expression of the flow's runs in Airflow, in UTC; none when not set"),
    _ferry(
        "ferry.lanes",
        kinds.integer(1, 1000),
        None,
        "transactional writers of a run; when not set, one for each 1,000 partitions that have something to copy, from 8 to 128",
    ),
    _ferry(
        "ferry.on.recreate",
        kinds.choice("fail", "restart"),
        "fail",
        "what to do when a source topic was deleted and created again, or truncated",
    ),
    _ferry(
        "ferry.on.target.recreate", kinds.choice("fail", "restart"), "fail", "what to do when a remote topic was deleted and created again"
    ),
    _ferry(
        "ferry.on.unexplained",
        kinds.choice("fail", "local"),
        "fail",
        "what records are that a remote topic holds at the first run and no ledger explains: fail asks, local means produced there",
    ),
    _ferry(
        "ferry.on.unclear",
        kinds.choice("fail", "local"),
        "fail",
        "what source records are that may have come from the target, where names stay as they are: fail asks, local copies them",
    ),
    _ferry("ferry.spark.connection", kinds.WORD, "spark_default", "Airflow connection of the Spark master"),
    _ferry("ferry.transaction.mb", kinds.integer(1, 1024), "64", "size at which a transaction is committed, in MiB"),
    _ferry(
        "ferry.transaction.seconds",
        kinds.integer(1, 50),
        "10",
        "age at which a transaction is committed; below the broker's time-out of 60 s",
    ),
    _ferry(
        "ferry.open.transaction.warn.ms",
        kinds.AT_LEAST_1,
        "900000",
        "age in ms from which a transaction that is open in a source or remote partition fails that partition by name, see "
        "[limits](limits.md); the default is the longest that brokers let a producer ask for (transaction.max.timeout.ms)",
    ),
    _ferry(
        "ferry.memory.mb",
        kinds.integer(128, 1 << 20),
        "512",
        "memory of one worker for record data, in MiB, beside about 100 MiB for itself, see [limits](limits.md)",
    ),
    _ferry(
        "ferry.max.rate.mb",
        kinds.RATE,
        "0",
        "bandwidth of a run over all its tasks in MB/s, reading and writing each (1 MB = 1,000,000 bytes of record batches), see "
        "[limits](limits.md); 0: no limit",
    ),
    _ferry("ferry.ledger.partitions", kinds.integer(1, 1000), "5", "partitions of the ledger when Ferry creates it", "target"),
    _ferry(
        "ferry.internal.topics.replication.factor",
        kinds.REPLICATION_FACTOR,
        "3",
        "replication factor of Ferry's internal topics; when not set, at most the number of brokers",
        "target",
    ),
    _ferry(
        "ferry.message.handler",
        kinds.WORD,
        None,
        "package.module:Class (or a function) that every record is given to, see [handlers](handlers.md); none when not set",
    ),
    _ferry("ferry.message.handler.args", kinds.STRING, None, "text that the handler's class is made with"),
    _ferry("ferry.handler.reroute", kinds.BOOLEAN, "false", "true is refused: a handler keeps a record's topic and partition"),
    _ferry(
        "ferry.assignment.listener",
        kinds.WORD,
        None,
        "package.module:Class that is told which partitions are about to be copied and were copied, see [handlers](handlers.md)",
    ),
    _ferry("ferry.assignment.listener.args", kinds.STRING, None, "text that the listener's class is made with"),
    _ferry(
        "ferry.abort.on.send.failure",
        kinds.BOOLEAN,
        "true",
        "whether a record that the target refuses for good stops its partition; false skips the record, and reports it as lost",
    ),
    _ferry("ferry.sync.acls.prefixed", kinds.BOOLEAN, "false", "whether ACLs of prefixed topic names are copied too, the prefix renamed"),
    _ferry("ferry.sync.acls.groups", kinds.BOOLEAN, "false", "whether ACLs of consumer groups are copied too, under the same names"),
    _ferry(
        "ferry.sync.acls.transactional.ids",
        kinds.BOOLEAN,
        "false",
        "whether ACLs of transactional ids are copied too, under the same names",
    ),
    _ferry(
        "ferry.sync.acls.write",
        kinds.choice("drop", "keep"),
        "drop",
        "drop: ALLOW WRITE is not copied and ALLOW ALL becomes READ, as in MM2; keep: both are copied as they are",
    ),
    _ferry(
        "ferry.sync.acls.remove",
        kinds.BOOLEAN,
        "false",
        "whether an ACL that Ferry created is removed again when the source's is gone; others are never removed",
    ),
    _ferry("ferry.sync.acls.report.only", kinds.BOOLEAN, "false", "whether the ACL sync only reports what it would do"),
    _ferry(
        "ferry.publish.source.group",
        kinds.GROUP,
        "",
        "consumer group on the source to which runs commit the flow's positions, for tools that watch lag there (KIP-656); nobody else may "
        "use it, and Ferry never reads it; needs Read on it and on the topics at the source",
    ),
    _ferry(
        "ferry.alert.lag.records",
        kinds.LONG_AT_LEAST_0,
        None,
        "most records of a topic that may be uncopied after a run, over all its partitions, see [alerts](alerts.md); no limit when not set",
    ),
    _ferry(
        "ferry.alert.lag.seconds",
        kinds.AT_LEAST_0,
        None,
        "greatest age in seconds that the oldest uncopied record of a topic may have after a run; no limit when not set",
    ),
    _ferry(
        "ferry.alert.headroom.seconds",
        kinds.AT_LEAST_0,
        None,
        "least time in seconds after a run until the source drops a topic's oldest uncopied record; no limit when not set",
    ),
    _ferry(
        "ferry.alert.deadline.seconds",
        kinds.AT_LEAST_1,
        None,
        "seconds after it was queued by which a run in Airflow must have ended; no deadline when not set",
    ),
    _ferry(
        "ferry.alert.callback",
        kinds.CALLABLES,
        "",
        "whom alerts are handed to: package.module:name of a function that takes the alert, or of Airflow's notifiers; several by commas",
    ),
    _ferry(
        "ferry.alert.callback.args",
        kinds.ARGUMENTS,
        None,
        "keyword arguments of callbacks, as a JSON object with an object for each callback's name",
    ),
    _ferry(
        "ferry.airflow.assets.max",
        kinds.integer(0, 100_000),
        "1000",
        "most refreshed remote topics that one run in Airflow announces as assets, see [downstream](downstream.md); 0: none",
    ),
    Property(
        "ferry.airflow.connection",
        kinds.WORD,
        None,
        "Airflow connection that gives the cluster's servers and login; the cluster's own keys in the file win over it",
        Scope.CLUSTER,
    ),
)
