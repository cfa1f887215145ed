"""The managed services that Ferry knows, each limit with the address of the document that says so.

Everything here comes from a document. Nobody could try one of these services: a proxy plays them (tests/drills/services).
"""

from collections.abc import Iterable

from ferry.clusters.admin.services import Limit, ManagedService, Setting

# The day on which the documents of all these services were read.
READ = "2026-11-26"
LEFT_OUT = "Ferry does not copy configs that the service refuses; ferry plan and each run name them"
_WITHOUT_TRANSACTIONS = Setting("transaction.producer", ("false",))
_CONFIG_LIST = "https://github.com/confluentinc/terraform-provider-confluent/blob/master/docs/resources/confluent_kafka_topic.md"
_FACTOR_ERROR = "https://github.com/confluentinc/ksql/issues/3942"
_MSK = "https://docs.aws.amazon.com/msk/latest/developerguide/"
_AZURE = "https://github.com/MicrosoftDocs/azure-docs/blob/main/articles/event-hubs/"
_AZURE_OVERVIEW = f"{_AZURE}azure-event-hubs-apache-kafka-overview.md"
_AZURE_CONFIGURATIONS = "https://docs.azure.cn/en-us/event-hubs/apache-kafka-configurations"
_REDPANDA = "https://github.com/redpanda-data/redpanda/tree/dev/src/v/kafka/server/handlers"
_WARPSTREAM = "https://docs.warpstream.com/warpstream/reference/protocol-and-feature-support"
_AUTOMQ = "https://docs.automq.com/automq-cloud/using-automq-for-kafka/restrictions"
_AZURE_HOSTS = (r"\.servicebus\.(windows\.net|chinacloudapi\.cn|usgovcloudapi\.net|cloudapi\.de)(:|$)",)
_MSK_HOSTS = (r"\.kafka\.[a-z0-9-]+\.amazonaws\.com(\.cn)?(:|$)",)


def _three_replicas(source: str) -> Limit:
    return Limit(
        "Every topic has three replicas.", "where replication.factor is lower, Ferry creates topics with the brokers' default", source
    )


def _azure(codecs: str, compression: tuple[Setting, ...]) -> tuple[Limit, ...]:
    """What all tiers of Event Hubs have in common."""
    return (
        Limit(codecs, "Ferry writes batches as they are, or with ferry.compression.type", _AZURE_OVERVIEW, compression),
        Limit(
            "A request may have at most 1,046,528 bytes; the connection is closed after a larger one.",
            "the producer's max.request.size must be 1,000,000 or less",
            _AZURE_CONFIGURATIONS,
            (Setting("max.request.size", ("1000000",)),),
        ),
        Limit(
            "Topic configs are set in Azure, not through Kafka.",
            "an administrator creates Ferry's own topics, and remote topics that are compacted, beforehand; configs cannot be synced",
            _AZURE_CONFIGURATIONS,
            (Setting("sync.topic.configs.enabled", ("false",)),),
        ),
        Limit(
            "Azure's roles and access policies decide who may do what.",
            "there are no ACLs of Kafka that Ferry could sync",
            f"{_AZURE}authorize-access-event-hubs.md",
        ),
    )


CONFLUENT_CLOUD = ManagedService(
    "Confluent Cloud",
    (_three_replicas(_FACTOR_ERROR), Limit("It refuses some topic configs, compression.type for example.", LEFT_OUT, _CONFIG_LIST)),
    hosts=(r"\.confluent\.cloud(:|$)",),
    cluster_ids="lkc-",
    factors=frozenset({-1, 3}),
)
MSK_PROVISIONED = ManagedService(
    "Amazon MSK (Standard brokers)",
    (Limit("It runs Apache Kafka.", "Ferry knows of no limits; brokers' configs are set in AWS", f"{_MSK}msk-configuration.md"),),
    hosts=_MSK_HOSTS,
)
MSK_EXPRESS = ManagedService(
    "Amazon MSK (Express brokers)",
    (
        _three_replicas(f"{_MSK}msk-configuration-express-read-only.html"),
        Limit(
            "Some topic configs are protected, segment.bytes for example.",
            LEFT_OUT,
            f"{_MSK}use-kafka-streams-express-brokers-msk-serverless.html",
        ),
    ),
    hosts=_MSK_HOSTS,
    factors=frozenset({-1, 3}),
)
MSK_SERVERLESS = ManagedService(
    "Amazon MSK Serverless",
    (
        Limit(
            "Only seven topic configs can be set, cleanup.policy only when the topic is created. max.message.bytes is at most 8 MiB.",
            LEFT_OUT,
            f"{_MSK}serverless-config.html",
        ),
        Limit(
            "Users log in with IAM, and there are no ACLs of Kafka.",
            "ACLs cannot be synced",
            f"{_MSK}msk-replicator-requirements.html",
            (Setting("sync.topic.acls.enabled", ("false",)),),
        ),
    ),
    hosts=(r"\.kafka-serverless\.[a-z0-9-]+\.amazonaws\.com(\.cn)?(:|$)",),
    access="IAM policies",
)
EVENT_HUBS_STANDARD = ManagedService(
    "Azure Event Hubs (Standard)",
    (
        Limit(
            "There are no transactions.",
            "Ferry can copy only at least once, and only with transaction.producer = false",
            _AZURE_OVERVIEW,
            (_WITHOUT_TRANSACTIONS,),
        ),
        *_azure("Records cannot be compressed.", (Setting("ferry.compression.type", ("none",)),)),
        Limit(
            "A namespace has at most 10 event hubs.",
            "each remote topic and each of Ferry's own topics is one",
            f"{_AZURE}compare-tiers.md",
            offered=True,
        ),
    ),
    hosts=_AZURE_HOSTS,
    takes_configs=False,
    transactions=False,
    most_topics=10,
    access="Azure's roles and access policies",
)
EVENT_HUBS_PREMIUM = ManagedService(
    "Azure Event Hubs (Premium or Dedicated)",
    (
        Limit(
            "Transactions are a public preview.",
            "unless transaction.producer = false, Ferry copies exactly once, if they work as in Kafka",
            _AZURE_OVERVIEW,
        ),
        *_azure("Records are compressed with gzip, or not at all.", (Setting("ferry.compression.type", ("gzip", "none")),)),
    ),
    hosts=_AZURE_HOSTS,
    takes_configs=False,
    access="Azure's roles and access policies",
)
REDPANDA = ManagedService(
    "Redpanda",
    (
        Limit(
            "Metadata is answered up to version 8, so there are no topic ids.",
            "if you delete a remote topic and create it again, Ferry does not notice; do not delete remote topics",
            f"{_REDPANDA}/metadata.h",
            offered=True,
        ),
        Limit(
            "Metadata is answered up to version 8, so there are no topic ids.",
            "before you create a source topic again, stop the flow; then set with ferry seed where copying begins",
            f"{_REDPANDA}/metadata.h",
            of_source=True,
            offered=True,
        ),
        Limit(
            "Some topic configs of Kafka have no meaning there; they are accepted and ignored.",
            "a remote topic has them in name only",
            f"{_REDPANDA}/topics/types.h",
        ),
    ),
    hosts=(r"\.cloud\.redpanda\.com(:|$)",),
    cluster_ids="redpanda.",
)
WARPSTREAM = ManagedService(
    "WarpStream",
    (
        Limit(
            "It can only set all configs of a topic at once (AlterConfigs).",
            "when Ferry changes one, it sends the others with the values that they have",
            _WARPSTREAM,
        ),
        Limit(
            "It has no DescribeProducers.",
            "Ferry does not find hanging transactions; readers with read_committed wait for them",
            _WARPSTREAM,
            offered=True,
        ),
        Limit(
            "It has no OffsetForLeaderEpoch.",
            "after an unclean leader election Ferry does not notice that other records have taken the place of those that it copied",
            _WARPSTREAM,
            of_source=True,
        ),
    ),
    hosts=(r"\.warpstream\.com(:|$)",),
)
AUTOMQ = ManagedService(
    "AutoMQ",
    (
        Limit(
            "Offsets of groups are kept for seven days.",
            "if no run comes for longer, Ferry reads its positions from its own topics",
            _AUTOMQ,
        ),
    ),
    # AutomqZoneRouter and AutomqGetPartitionSnapshot (clients/src/main/resources/common/message of AutoMQ/automq).
    api_keys=frozenset({515, 516}),
)
AIVEN = ManagedService(
    "Aiven for Apache Kafka",
    (
        Limit(
            "ACLs of Aiven apply too, and Kafka does not show them.",
            "a right that ferry doctor calls missing may exist",
            "https://aiven.io/docs/products/kafka/howto/manage-acls",
        ),
    ),
    hosts=(r"\.aivencloud\.com(:|$)",),
)
SERVICES = (
    CONFLUENT_CLOUD,
    MSK_PROVISIONED,
    MSK_EXPRESS,
    MSK_SERVERLESS,
    EVENT_HUBS_STANDARD,
    EVENT_HUBS_PREMIUM,
    REDPANDA,
    WARPSTREAM,
    AUTOMQ,
    AIVEN,
)


def services_at(bootstrap: str, cluster_id: str, offered: Iterable[int]) -> tuple[ManagedService, ...]:
    """The services that a cluster may be of; several if they cannot be distinguished, none if the cluster is like any Kafka."""
    keys = frozenset(offered)
    return tuple(service for service in SERVICES if service.is_at(bootstrap, cluster_id, keys))


def named(services: Iterable[ManagedService]) -> str:
    """Their names, for people; empty: none. Kinds of one product stand together: Amazon MSK (Standard brokers or Express brokers)."""
    names = [service.name for service in services]
    product, _, _ = names[0].partition(" (") if names else ("", "", "")
    if len(names) > 1 and all(name.startswith(f"{product} (") for name in names):
        return f"{product} ({' or '.join(name.removeprefix(f'{product} (').removesuffix(')') for name in names)})"
    return " or ".join(names)
