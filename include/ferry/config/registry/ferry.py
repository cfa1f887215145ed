"""Ferry's own properties."""

from ferry.config.registry import kinds
from ferry.config.registry.property import Property, Scope

# 6 days: what the runs topic says of a run is read for 7 days (RUN_DAYS), and its report needs the beginning.
MOST_FOLLOW_SECONDS = 518_400
# Ferry commits a transaction at an age between these, in seconds. Brokers abort one after 60.
SHORTEST_TRANSACTION, LONGEST_TRANSACTION = 1, 50

# fmt: off
# A row has one line, or a few when its meaning is long.
FERRY: tuple[Property, ...] = (
    Property("ferry.start", kinds.START, None,
        "where the flow's first run begins: earliest, latest, or the first record at or after an ISO time (UTC if the time has no offset); "
        "newer partitions begin [at the start of their logs](how-it-copies.md#seeds). If not set: auto.offset.reset of the source's "
        "consumer, otherwise earliest"),
    Property("ferry.schedule", kinds.CRON, None, "cron expression of the flow's runs in Airflow, in UTC; if not set, a person starts them"),
    Property("ferry.watch.seconds", kinds.integer(0, 86_400), "0",
        "how often Airflow looks whether the source has records that are not copied, in seconds: then it starts a run, see "
        "[runs by records](airflow.md#runs-that-records-start). 0: it does not look"),
    Property("ferry.lanes", kinds.integer(1, 1000), None,
        "number of transactional writers of a run. If not set: one for each 1,000 partitions with something to copy, from 8 to 128"),
    Property("ferry.on.recreate", kinds.choice("fail", "restart"), "fail",
        "what Ferry does if a source topic was deleted and created again, or truncated: fail stops its partitions, restart copies the "
        "new records"),
    Property("ferry.on.target.recreate", kinds.choice("fail", "restart"), "fail",
        "what Ferry does if a remote topic was deleted, or created again: fail stops its partitions, restart copies the topic again"),
    Property("ferry.on.unexplained", kinds.choice("fail", "local"), "fail",
        "what Ferry does if, at the first run, a remote topic holds records that no ledger explains: fail stops the partition, local "
        "treats them as records that were produced there"),
    Property("ferry.on.unclear", kinds.choice("fail", "local"), "fail",
        "what Ferry does if topics keep their names and source records may have come from the target: fail stops the partition, local "
        "copies them"),
    Property("ferry.spark.connection", kinds.WORD, "spark_default", "Airflow connection of the Spark master"),
    Property("ferry.spark.offsets", kinds.AT_LEAST_0, "100000",
        "a command without --master starts Spark from this number of source offsets on. It copies fewer in its own process, which starts "
        "sooner. A run that follows, and every run of a DAG, uses Spark"),
    Property("ferry.compression.type", kinds.choice("producer", "none", "gzip", "snappy", "lz4", "zstd"), "producer",
        "codec of the batches that Ferry writes to remote topics. producer: each batch keeps the codec that it has at the source. "
        "Otherwise Ferry encodes batches that have another codec anew, which costs CPU time: for targets that do not take every codec, "
        "see [topics](topics-configs-acls.md#codecs)"),
    Property("ferry.transaction.mb", kinds.times(1 << 20, kinds.integer(1, 1024)), "64",
        "Ferry commits a transaction at this size, in MiB"),
    Property("ferry.follow.seconds", kinds.integer(0, MOST_FOLLOW_SECONDS), "0",
        "a run copies what arrives for this many seconds, or until the next run takes over. 0: a run ends at the ends that it saw"),
    Property("ferry.follow.commit.ms", kinds.integer(1, 1000 * LONGEST_TRANSACTION), None,
        "a run that follows fetches what has arrived this often, in ms, and commits it. While it is behind, it does not wait. If not set: "
        "from 50 to 400 ms, as short as costs a worker at most a quarter of a core, and longer while the target is slow"),
    Property("ferry.transaction.seconds", kinds.integer(SHORTEST_TRANSACTION, LONGEST_TRANSACTION), "10",
        "Ferry commits a transaction at this age, in seconds. The broker aborts a transaction after 60 s"),
    Property("ferry.open.transaction.warn.ms", kinds.AT_LEAST_1, "900000",
        "if a transaction in a source or remote partition is open for longer than this, in ms, the partition fails, see "
        "[limits](limits.md). The default is the longest time-out that brokers by default allow (transaction.max.timeout.ms)"),
    Property("ferry.memory.mb", kinds.times(1 << 20, kinds.integer(128, 1 << 20)), "512",
        "memory of one worker for record data, in MiB. The worker itself needs about 100 MiB more, see [limits](limits.md)"),
    Property("ferry.max.rate.mb", kinds.times(1_000_000, kinds.RATE), "0",
        "limit for all tasks of a run together, in MB/s, separately for reading and for writing (1 MB = 1,000,000 bytes of record "
        "batches), see [limits](limits.md). 0: no limit"),
    Property("ferry.ledger.partitions", kinds.integer(1, 1000), "5", "number of partitions with which Ferry creates the ledger",
        of_target=True),
    Property("ferry.internal.topics.replication.factor", kinds.REPLICATION_FACTOR, "3",
        "replication factor of Ferry's internal topics. If not set: 3, or the number of brokers if that is smaller", of_target=True),
    Property("ferry.message.handler", kinds.WORD, None,
        "package.module:Class or function that gets every record, see [handlers](handlers.md)"),
    Property("ferry.message.handler.args", kinds.STRING, None, "text that the constructor of the handler's class gets"),
    Property("ferry.handler.reroute", kinds.LIST, "",
        "topics of the target that the handler may choose for a record instead of its remote topic, with any of their partitions, see "
        "[handlers](handlers.md#choose-topic-and-partition)"),
    Property("ferry.assignment.listener", kinds.WORD, None,
        "package.module:Class that Ferry calls before and after it copies partitions, see [handlers](handlers.md)"),
    Property("ferry.assignment.listener.args", kinds.STRING, None, "text that the constructor of the listener's class gets"),
    Property("ferry.abort.on.send.failure", kinds.BOOLEAN, "true",
        "true: a record that the target refuses permanently stops its partition. false: Ferry leaves the record out, the ledger and the "
        "report name it, and the run ends with exit code 4"),
    Property("ferry.sync.acls.prefixed", kinds.BOOLEAN, "false",
        "whether ACLs of prefixed topic names are copied too, with the prefix renamed"),
    Property("ferry.sync.acls.groups", kinds.BOOLEAN, "false", "whether ACLs of consumer groups are copied too, under the same names"),
    Property("ferry.sync.acls.transactional.ids", kinds.BOOLEAN, "false",
        "whether ACLs of transactional ids are copied too, under the same names"),
    Property("ferry.sync.acls.write", kinds.choice("drop", "keep"), "drop",
        "drop: Ferry does not copy ALLOW WRITE, and copies ALLOW ALL as ALLOW READ, as MM2 does. keep: it copies both unchanged"),
    Property("ferry.sync.acls.remove", kinds.BOOLEAN, "false",
        "whether Ferry removes an ACL from the target if the source no longer has it. Ferry removes only ACLs that it created"),
    Property("ferry.sync.acls.report.only", kinds.BOOLEAN, "false", "true: the ACL sync only reports what it would do"),
    Property("ferry.groups.latest", kinds.PATTERNS, "",
        "groups whose consumers read with `auto.offset.reset=latest`: names and Java regular expressions, see "
        "[translation](translation.md#partitions-without-an-offset)"),
    Property("ferry.publish.source.group", kinds.GROUP, "",
        "consumer group on the source to which runs commit the flow's positions, for tools that watch lag there (KIP-656). Nobody else "
        "may use the group, and Ferry never reads it. Ferry needs Read on the group and on the topics at the source"),
    Property("ferry.alert.lag.records", kinds.LONG_AT_LEAST_0, None,
        "alert if a topic has more uncopied records than this after a run, in all its partitions together, see [alerts](alerts.md). "
        "If not set: no limit"),
    Property("ferry.alert.lag.seconds", kinds.AT_LEAST_0, None,
        "alert if the oldest uncopied record of a topic is older than this after a run, in seconds. If not set: no limit"),
    Property("ferry.alert.headroom.seconds", kinds.AT_LEAST_0, None,
        "alert if, after a run, the source will delete the oldest uncopied record of a topic in less than this time, in seconds. "
        "If not set: no limit"),
    Property("ferry.alert.deadline.seconds", kinds.AT_LEAST_1, None,
        "alert if a run in Airflow has not ended this number of seconds after it was queued. If not set: no deadline"),
    Property("ferry.alert.on.first.failure", kinds.BOOLEAN, "false",
        "whether a task in Airflow that fails for the first time in a run raises a warning at once, although Airflow will try it again"),
    Property("ferry.alert.callback", kinds.CALLABLES, "",
        "who gets alerts: package.module:name of a function that takes the alert, or of a notifier of Airflow. Several are separated by "
        "commas"),
    Property("ferry.alert.callback.args", kinds.ARGUMENTS, None,
        "keyword arguments of callbacks: a JSON object with one object for each callback"),
    Property("ferry.airflow.assets.max", kinds.integer(0, 100_000), "1000",
        "largest number of remote topics that one run in Airflow announces as assets, see [downstream](downstream.md). 0: none"),
    Property("ferry.airflow.connection", kinds.WORD, None,
        "Airflow connection with the cluster's servers and login. Keys of the cluster in the file win over it", scope=Scope.CLUSTER),
)
