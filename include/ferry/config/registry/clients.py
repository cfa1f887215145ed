"""Kafka's Java client properties (ConsumerConfig, ProducerConfig, AdminClientConfig of Kafka 4.4) and what becomes of them.

Ferry copies raw record batches over its own connections. So settings about how a Java client fetches, batches or compresses records have no
effect. Ferry honours everything about connections and logins.
"""

from functools import partial

from ferry.config.registry import kinds
from ferry.config.registry.kinds import Kind
from ferry.config.registry.property import Effect, Property, Scope

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
ONLY_CONSUMER, ONLY_PRODUCER, ONLY_ADMIN = (frozenset({role}) for role in ("consumer", "producer", "admin"))
ALL = ONLY_CONSUMER | ONLY_PRODUCER | ONLY_ADMIN

FIXED = "exactly-once needs a fixed value, which Ferry sets"
RAW = "Ferry copies whole batches, with the compression that they have"
CODEC = f"{RAW}; ferry.compression.type changes it"
NO_GROUP = "Ferry's readers join no group"
NO_JAVA = "a Java class that Ferry cannot run"
KERBEROS = "Ferry renews tickets in time"
BROKER_SIDE = "brokers use it to check tokens"
METRICS = "metrics go through Airflow"
FIRST_SERVERS = "every run starts at bootstrap.servers"
SAME_PARTITION = "records keep their partition"
_OAUTH = "org.apache.kafka.common.security.oauthbearer."
_AWS = "software.amazon.msk.auth.iam."


def _refused(name: str, meaning: str, instead: str) -> Property:
    return Property(name, kinds.STRING, None, meaning, instead, Scope.CLIENT, Effect.REFUSED, ALL)


_client = partial(Property, scope=Scope.CLIENT, roles=ALL)
_idle = partial(_client, effect=Effect.NO_EFFECT)
_consumer = partial(_idle, roles=ONLY_CONSUMER)
_producer = partial(_idle, roles=ONLY_PRODUCER)


def _assertion(name: str, kind: Kind, default: str | None, meaning: str) -> Property:
    return _client(f"sasl.oauthbearer.assertion.{name}", kind, default, meaning)


# fmt: off
# A row has one line, or two when it is long.
CLIENTS: tuple[Property, ...] = (
    # Connections.
    _client("bootstrap.servers", kinds.SERVERS, None, "host:port pairs of brokers to connect to first; required for every cluster"),
    _client("client.id", kinds.STRING, "ferry", "name of the client in the brokers' logs, metrics and quotas"),
    _client("client.dns.lookup", kinds.choice("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"), "use_all_dns_ips",
        "how host names become addresses"),
    _client("request.timeout.ms", kinds.AT_LEAST_0, "30000", "how long a client waits for an answer; the copy always waits up to 40 s"),
    _client("metadata.max.age.ms", kinds.LONG_AT_LEAST_0, "300000", "age at which a client reads the list of partitions again"),
    _client("connections.max.idle.ms", kinds.LONG, "540000", "idle time after which a client closes a connection"),
    _client("reconnect.backoff.ms", kinds.LONG_AT_LEAST_0, "50", "first pause before a client connects again"),
    _client("reconnect.backoff.max.ms", kinds.LONG_AT_LEAST_0, "1000", "longest such pause; the copy itself always uses 1 s"),
    _client("retry.backoff.ms", kinds.LONG_AT_LEAST_0, "100", "first pause before a client sends a request again"),
    _client("retry.backoff.max.ms", kinds.LONG_AT_LEAST_0, "1000", "longest such pause"),
    _client("socket.connection.setup.timeout.ms", kinds.LONG, "10000", "how long a client waits for a new connection"),
    _client("socket.connection.setup.timeout.max.ms", kinds.LONG, "30000", "the same after repeated failures; only for the copy itself"),
    _client("send.buffer.bytes", kinds.integer(-1, 2**31 - 1), "131072", "TCP send buffer; -1: the system decides"),
    _client("receive.buffer.bytes", kinds.integer(-1, 2**31 - 1), "65536", "TCP receive buffer; -1: the system decides"),
    _client("auto.offset.reset", kinds.STRING, "earliest", "for the source's consumer: where the flow's first run begins, see ferry.start",
        roles=ONLY_CONSUMER),
    _client("max.request.size", kinds.AT_LEAST_0, "1048576",
        "largest request of the clients that write MM2's internal topics; if it is set for the target, also the largest one of the copy",
        roles=ONLY_PRODUCER),
    _client("delivery.timeout.ms", kinds.AT_LEAST_0, "120000", "how long those clients try to write a record", roles=ONLY_PRODUCER),
    # Logins.
    _client("security.protocol", kinds.choice(*PROTOCOLS, ignore_case=True), "PLAINTEXT", "protocol of the connection"),
    _client("sasl.mechanism", kinds.STRING, "GSSAPI",
        "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, AWS_MSK_IAM or GSSAPI"),
    _client("sasl.jaas.config", kinds.PASSWORD, None, "login module with its options, as in a JAAS file"),
    _client("sasl.login.callback.handler.class",
        kinds.java_class(f"{_OAUTH}OAuthBearerLoginCallbackHandler", f"{_OAUTH}secured.OAuthBearerLoginCallbackHandler",
            f"{_AWS}IAMOAuthBearerLoginCallbackHandler", own=True), None,
        "where the tokens of OAUTHBEARER come from: Kafka's own handler, AWS's handler, or a class of your own"),
    _client("sasl.client.callback.handler.class", kinds.java_class(f"{_AWS}IAMClientCallbackHandler"), None,
        "AWS's handler, which Java clients need for AWS_MSK_IAM"),
    _client("sasl.oauthbearer.token.endpoint.url", kinds.WORD, None, "URL of the token endpoint (https, http) or of a token file (file)"),
    _client("sasl.oauthbearer.client.credentials.client.id", kinds.STRING, None, "client id; if not set, clientId of sasl.jaas.config"),
    _client("sasl.oauthbearer.client.credentials.client.secret", kinds.PASSWORD, None,
        "client secret; if not set, clientSecret of sasl.jaas.config"),
    _client("sasl.oauthbearer.scope", kinds.STRING, None, "scope of the token. If not set: scope of sasl.jaas.config"),
    _client("sasl.oauthbearer.jwt.retriever.class",
        kinds.java_class(*(f"{_OAUTH}{name}JwtRetriever" for name in ("Default", "ClientCredentials", "File", "JwtBearer"))),
        "DefaultJwtRetriever",
        "JwtBearerJwtRetriever: a JWT assertion is the grant. With the others, the URL decides how a client gets tokens"),
    _assertion("file", kinds.WORD, None, "file with a JWT that another program renews; Ferry then ignores the other keys of assertions"),
    _assertion("private.key.file", kinds.WORD, None, "file with the private key (PEM) that signs the JWT"),
    _assertion("private.key.passphrase", kinds.PASSWORD, None, "password of that key"),
    _assertion("algorithm", kinds.choice("RS256", "ES256", ignore_case=True), "RS256", "algorithm of the signature"),
    _assertion("claim.aud", kinds.STRING, None, "audience of the JWT"),
    _assertion("claim.iss", kinds.STRING, None, "issuer of the JWT. Without JwtBearerJwtRetriever: the JWT proves who the client is"),
    _assertion("claim.sub", kinds.STRING, None, "subject of the JWT"),
    _assertion("claim.exp.seconds", kinds.integer(0, 86_400), "300", "how long the JWT is valid"),
    _assertion("claim.nbf.seconds", kinds.integer(0, 3_600), "60", "how long before its creation the JWT is valid"),
    _assertion("claim.jti.include", kinds.BOOLEAN, "false", "whether each JWT has an id of its own"),
    _assertion("template.file", kinds.WORD, None, "JSON file with more headers and claims of the JWT"),
    _client("sasl.kerberos.service.name", kinds.WORD, None,
        "first part of the brokers' principals. If not set: serviceName of sasl.jaas.config"),
    _client("sasl.kerberos.kinit.cmd", kinds.WORD, "/usr/bin/kinit", "program with which librdkafka gets tickets"),
    _client("sasl.kerberos.min.time.before.relogin", kinds.integer(0, 86_400_000), "60000", "how often librdkafka gets new tickets"),
    _client("sasl.login.connect.timeout.ms", kinds.AT_LEAST_0, "10000", "how long a client waits for the token endpoint"),
    _client("ssl.enabled.protocols", kinds.list_of("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"), "TLSv1.2,TLSv1.3",
        "TLS versions that the client offers. Ferry's clients speak 1.2 and 1.3"),
    _client("ssl.protocol", kinds.choice("TLS", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"), "TLSv1.3",
        "TLSv1.2 or older: the client does not offer TLS 1.3"),
    _client("ssl.cipher.suites", kinds.LIST, None,
        "cipher suites that the client offers, by their Java names. If a suite of TLS 1.3 is missing, the client offers only TLS 1.2"),
    _client("ssl.truststore.location", kinds.WORD, None, "file with the certificates to trust. If not set: those of the system"),
    _client("ssl.truststore.password", kinds.PASSWORD, None, "password of that file"),
    _client("ssl.truststore.type", kinds.choice("JKS", "PKCS12", "PEM", ignore_case=True), "JKS", "format of that file"),
    _client("ssl.truststore.certificates", kinds.PASSWORD, None, "the certificates themselves, as PEM"),
    _client("ssl.keystore.location", kinds.WORD, None, "file with the client's key and certificate chain"),
    _client("ssl.keystore.password", kinds.PASSWORD, None, "password of that file"),
    _client("ssl.keystore.type", kinds.choice("JKS", "PKCS12", "PEM", ignore_case=True), "JKS", "format of that file"),
    _client("ssl.keystore.certificate.chain", kinds.PASSWORD, None, "the certificate chain itself, as PEM"),
    _client("ssl.keystore.key", kinds.PASSWORD, None, "the private key itself, as PEM (PKCS#8)"),
    _client("ssl.key.password", kinds.PASSWORD, None, "password of the private key"),
    _client("ssl.endpoint.identification.algorithm", kinds.choice("https", "", ignore_case=True), "https",
        "https: the client checks the broker's host name. Empty: it does not"),
    # Logins, without effect.
    _idle("sasl.login.read.timeout.ms", kinds.INT, None, "time-out of the token endpoint", "see sasl.login.connect.timeout.ms"),
    _idle("sasl.login.refresh.buffer.seconds", kinds.INT, "300", "when tokens are renewed", "Ferry renews tokens in time"),
    _idle("sasl.login.refresh.min.period.seconds", kinds.INT, "60", "when tokens are renewed", "Ferry renews tokens in time"),
    _idle("sasl.login.refresh.window.factor", kinds.DECIMAL, "0.8", "when tokens are renewed", "Ferry renews tokens in time"),
    _idle("sasl.login.refresh.window.jitter", kinds.DECIMAL, "0.05", "when tokens are renewed", "Ferry renews tokens in time"),
    _idle("sasl.login.retry.backoff.ms", kinds.LONG, "100", "pause of login attempts", "see retry.backoff.ms"),
    _idle("sasl.login.retry.backoff.max.ms", kinds.LONG, "10000", "longest such pause", "see retry.backoff.max.ms"),
    _idle("sasl.kerberos.ticket.renew.jitter", kinds.DECIMAL, "0.05", "when tickets are renewed", KERBEROS),
    _idle("sasl.kerberos.ticket.renew.window.factor", kinds.DECIMAL, "0.8", "when tickets are renewed", KERBEROS),
    _idle("sasl.oauthbearer.clock.skew.seconds", kinds.INT, "30", "checking tokens", BROKER_SIDE),
    _idle("sasl.oauthbearer.expected.audience", kinds.LIST, None, "checking tokens", BROKER_SIDE),
    _idle("sasl.oauthbearer.expected.issuer", kinds.STRING, None, "checking tokens", BROKER_SIDE),
    _idle("sasl.oauthbearer.jwks.endpoint.refresh.ms", kinds.LONG, "3600000", "checking tokens", BROKER_SIDE),
    _idle("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", kinds.LONG, "10000", "checking tokens", BROKER_SIDE),
    _idle("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", kinds.LONG, "100", "checking tokens", BROKER_SIDE),
    _idle("sasl.oauthbearer.jwks.endpoint.url", kinds.STRING, None, "checking tokens", BROKER_SIDE),
    _idle("sasl.oauthbearer.jwt.validator.class", kinds.CLASS, None, "checking tokens", BROKER_SIDE),
    _idle("sasl.oauthbearer.scope.claim.name", kinds.STRING, "scope", "checking tokens", BROKER_SIDE),
    _idle("sasl.oauthbearer.sub.claim.name", kinds.STRING, "sub", "checking tokens", BROKER_SIDE),
    _idle("ssl.keymanager.algorithm", kinds.STRING, "SunX509", "Java's key manager", "Ferry's clients use OpenSSL"),
    _idle("ssl.trustmanager.algorithm", kinds.STRING, "PKIX", "Java's trust manager", "Ferry's clients use OpenSSL"),
    _idle("ssl.secure.random.implementation", kinds.STRING, None, "Java's random numbers", "Ferry's clients use OpenSSL"),
    # Logins, refused.
    _refused("ssl.engine.factory.class", "Java's TLS engine", NO_JAVA),
    _refused("ssl.provider", "Java's security provider", NO_JAVA),
    _refused("security.providers", "Java's security providers", NO_JAVA),
    _refused("sasl.login.class", "Java's login", NO_JAVA),
    _refused("sasl.oauthbearer.header.urlencode", "encoding of client credentials", "Ferry's clients do not have it: remove the key"),
    # Other properties of several clients.
    _idle("bootstrap.controllers", kinds.LIST, None, "controllers to connect to", "Ferry connects to brokers", roles=ONLY_ADMIN),
    _idle("bootstrap.resolve.timeout.ms", kinds.LONG, "0", "how long a client looks up names of bootstrap.servers", FIRST_SERVERS),
    _idle("default.api.timeout.ms", kinds.INT, "60000", "time limit of a client call", "Ferry sets its own time limits",
        roles=ALL - ONLY_PRODUCER),
    _idle("enable.metrics.push", kinds.BOOLEAN, "true", "whether client metrics go to the brokers (KIP-714)", METRICS),
    _idle("metadata.cluster.check.enable", kinds.BOOLEAN, "true", "whether a client says which cluster it means (KIP-1242)",
        "Ferry compares the ids of both clusters itself"),
    _idle("metadata.recovery.rebootstrap.trigger.ms", kinds.LONG, "300000", "when a client connects to bootstrap.servers again",
        FIRST_SERVERS),
    _idle("metadata.recovery.strategy", kinds.STRING, "rebootstrap", "how a client connects again", FIRST_SERVERS),
    _idle("metric.reporters", kinds.LIST, None, "Java metric reporters", METRICS),
    _idle("metrics.num.samples", kinds.INT, "2", "Java metrics", METRICS),
    _idle("metrics.recording.level", kinds.STRING, "INFO", "Java metrics", METRICS),
    _idle("metrics.sample.window.ms", kinds.LONG, "30000", "Java metrics", METRICS),
    _idle("auto.include.jmx.reporter", kinds.BOOLEAN, "true", "Java metrics", METRICS),
    _idle("config.providers", kinds.LIST, None, "config providers of one client", "write config.providers at the top level"),
    _idle("retries", kinds.INT, "2147483647", "how often a request is sent again", "Ferry limits retries by time",
        roles=ALL - ONLY_CONSUMER),
    _idle("interceptor.classes", kinds.LIST, None, "Java interceptors", NO_JAVA, roles=ALL - ONLY_ADMIN),
    # Only of consumers.
    _consumer("allow.auto.create.topics", kinds.BOOLEAN, "true", "whether reading creates topics", "reading never creates topics"),
    _consumer("auto.commit.interval.ms", kinds.INT, "5000", "offset commits of the group", NO_GROUP),
    _consumer("check.crcs", kinds.BOOLEAN, "true", "whether checksums are checked", "Ferry always checks them"),
    _idle("client.rack", kinds.STRING, None, "rack to fetch from", "Ferry reads from leaders, which know the last stable offset first",
        roles=ALL - ONLY_ADMIN),
    _consumer("enable.auto.commit", kinds.BOOLEAN, "true", "offset commits of the group", NO_GROUP),
    _consumer("exclude.internal.topics", kinds.BOOLEAN, "true", "subscription", NO_GROUP),
    _consumer("fetch.max.bytes", kinds.AT_LEAST_0, "52428800", "size of a fetch", "Ferry chooses the size of its fetches"),
    _consumer("fetch.max.wait.ms", kinds.AT_LEAST_0, "500", "longest wait of a fetch", "Ferry chooses how long its fetches wait"),
    _consumer("fetch.min.bytes", kinds.AT_LEAST_0, "1", "size of a fetch", "Ferry chooses the size of its fetches"),
    _consumer("group.id", kinds.STRING, None, "the group", NO_GROUP),
    _consumer("group.instance.id", kinds.STRING, None, "the group", NO_GROUP),
    _consumer("group.protocol", kinds.STRING, "classic", "the group", NO_GROUP),
    _consumer("group.remote.assignor", kinds.STRING, None, "the group", NO_GROUP),
    _consumer("heartbeat.interval.ms", kinds.INT, "3000", "the group", NO_GROUP),
    _consumer("isolation.level", kinds.choice("read_committed", "read_uncommitted"), "read_committed",
        "whether records of open and aborted transactions are read", "Ferry always reads committed records only"),
    _consumer("key.deserializer", kinds.CLASS, None, "how keys are read", RAW),
    _consumer("value.deserializer", kinds.CLASS, None, "how values are read", RAW),
    _consumer("max.partition.fetch.bytes", kinds.AT_LEAST_0, "1048576", "size of a fetch", "Ferry chooses the size of its fetches"),
    _consumer("max.poll.interval.ms", kinds.AT_LEAST_1, "300000", "the group", NO_GROUP),
    _consumer("max.poll.records", kinds.AT_LEAST_1, "500", "records of a poll", RAW),
    _consumer("partition.assignment.strategy", kinds.LIST, None, "the group", NO_GROUP),
    _consumer("session.timeout.ms", kinds.INT, "45000", "the group", NO_GROUP),
    _consumer("share.acknowledgement.mode", kinds.STRING, "implicit", "share groups", NO_GROUP),
    _consumer("share.acquire.mode", kinds.STRING, "batch_optimized", "share groups", NO_GROUP),
    # Only of producers.
    _producer("acks", kinds.choice("all", "-1", "0", "1"), "all", "which replicas must acknowledge a record", FIXED),
    _producer("batch.size", kinds.AT_LEAST_0, "16384", "size of a batch", RAW),
    _producer("buffer.memory", kinds.LONG_AT_LEAST_0, "33554432", "memory for batches", RAW),
    _producer("compression.gzip.level", kinds.INT, "-1", "compression", RAW),
    _producer("compression.lz4.level", kinds.INT, "9", "compression", RAW),
    _producer("compression.type", kinds.choice("none", "gzip", "snappy", "lz4", "zstd"), "none", "compression", CODEC),
    _producer("compression.zstd.level", kinds.INT, "3", "compression", RAW),
    _producer("enable.idempotence", kinds.BOOLEAN, "true", "whether a retry can duplicate a record", FIXED),
    _producer("key.serializer", kinds.CLASS, None, "how keys are written", RAW),
    _producer("value.serializer", kinds.CLASS, None, "how values are written", RAW),
    _producer("linger.ms", kinds.LONG_AT_LEAST_0, "5", "how long a batch waits for more records", RAW),
    _producer("max.block.ms", kinds.LONG_AT_LEAST_0, "60000", "how long sending may block", "Ferry sets its own time limits"),
    _producer("max.in.flight.requests.per.connection", kinds.AT_LEAST_1, "5", "number of requests in flight", FIXED),
    _producer("metadata.max.idle.ms", kinds.LONG, "300000", "how long a client keeps metadata of unused topics",
        "a run keeps metadata of its topics only"),
    _producer("partitioner.adaptive.partitioning.enable", kinds.BOOLEAN, "true", "choice of the partition", SAME_PARTITION),
    _producer("partitioner.availability.timeout.ms", kinds.LONG, "0", "choice of the partition", SAME_PARTITION),
    _producer("partitioner.class", kinds.CLASS, None, "choice of the partition", SAME_PARTITION),
    _producer("partitioner.rack.aware", kinds.BOOLEAN, "false", "choice of the partition", SAME_PARTITION),
    _producer("partitioner.ignore.keys", kinds.BOOLEAN, "false", "choice of the partition", SAME_PARTITION),
    _producer("transaction.timeout.ms", kinds.INT, "60000", "time after which the broker aborts", FIXED),
    _producer("transaction.two.phase.commit.enable", kinds.BOOLEAN, "false", "two-phase commit", FIXED),
    _producer("transactional.id", kinds.STRING, None, "name of the transactional producer", "each lane of a flow has its own"),
)
