"""Properties of the whole file, and of Kafka Connect's workers (DistributedConfig). Ferry has no such workers."""

from ferry.config.registry import kinds
from ferry.config.registry.property import Effect, Property, Scope

NO_WORKER = "Ferry has no Connect worker"

# fmt: off
FILE: tuple[Property, ...] = (
    Property("clusters", kinds.LIST, None, "the aliases of the clusters; required", scope=Scope.FILE),
    Property("config.providers", kinds.LIST, "", "names of the config providers to which `${name:path:key}` refers", scope=Scope.FILE),
    Property("config.providers.<name>.class", kinds.CLASS, None, "Java class: EnvVar-, File- or DirectoryConfigProvider", scope=Scope.FILE),
    Property("config.providers.<name>.param.<parameter>", kinds.STRING, None, "allowed.paths or allowlist.pattern", scope=Scope.FILE),
    Property("dedicated.mode.enable.internal.rest", kinds.BOOLEAN, "false", "whether MM2's processes call each other over REST", NO_WORKER,
        Scope.FILE, Effect.NO_EFFECT),
)
# fmt: on

# Ferry ignores all of these for the same reason, so they share one description.
_WORKER_NAMES = """
    access.control.allow.methods access.control.allow.origin admin.listeners admin.listeners.https.ssl.client.auth
    config.storage.replication.factor config.storage.topic connect.protocol connector.client.config.override.policy
    exactly.once.source.support group.id header.converter header.converter.version heartbeat.interval.ms
    inter.worker.key.generation.algorithm inter.worker.key.size inter.worker.key.ttl.ms inter.worker.signature.algorithm
    inter.worker.verification.algorithms internal.topics.automatic.creation.enable key.converter key.converter.version listeners
    listeners.https.ssl.client.auth
    offset.flush.interval.ms offset.flush.timeout.ms offset.storage.partitions offset.storage.replication.factor offset.storage.topic
    plugin.discovery plugin.path rebalance.timeout.ms response.http.headers.config rest.advertised.host.name rest.advertised.listener
    rest.advertised.port rest.extension.classes scheduled.rebalance.max.delay.ms session.timeout.ms ssl.client.auth
    status.storage.partitions status.storage.replication.factor status.storage.topic task.shutdown.graceful.timeout.ms
    topic.creation.enable topic.tracking.allow.reset topic.tracking.enable value.converter value.converter.version
    worker.sync.timeout.ms worker.unsync.backoff.ms
""".split()  # noqa: SIM905 - a list would take a line for each name

WORKERS: tuple[Property, ...] = tuple(
    Property(name, kinds.STRING, None, "setting of a Connect worker", NO_WORKER, Scope.WORKER, Effect.NO_EFFECT) for name in _WORKER_NAMES
)
