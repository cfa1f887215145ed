"""Properties of schema registries (after a cluster's alias), and of the sync of schemas."""

from dataclasses import replace

from ferry.config.registry import kinds
from ferry.config.registry.clients import CLIENTS
from ferry.config.registry.property import Effect, Property, Scope

REGISTRY_PREFIX = "schema.registry."


def _own(name: str, kind: kinds.Kind, meaning: str) -> Property:
    return Property(REGISTRY_PREFIX + name, kind, None, meaning, scope=Scope.CLIENT)


# fmt: off
SCHEMAS: tuple[Property, ...] = (
    Property("sync.schemas.enabled", kinds.BOOLEAN, "true",
        "whether schemas are copied from the source's schema registry to the target's, before records are copied. It has an effect if "
        "both clusters have schema.registry.url, see [schemas](schemas.md)"),
    Property("sync.schemas.interval.seconds", kinds.LONG, "60",
        "how often a run that follows syncs schemas. Each run does it before it copies"),
    Property("sync.schemas.subjects", kinds.PATTERNS, ".*", "subjects to copy: names and Java regular expressions, without a context"),
    Property("sync.schemas.subjects.exclude", kinds.PATTERNS, "", "subjects that are not copied; wins over sync.schemas.subjects"),
    Property("sync.schemas.contexts", kinds.CONTEXTS, ".",
        "contexts to copy, each as `.source=.target`, or `.source` to keep its name. `.` is the default context"),
    Property("sync.schemas.rewrite.ids.topics", kinds.PATTERNS, "",
        "topics of the source whose records get the ids of the target's schema registry. If any are named, schemas are registered without "
        "ids, see [ids rewritten](schemas.md#ids-rewritten)"),
    Property("sync.schemas.rewrite.ids.parts", kinds.list_of("key", "value"), "key,value", "parts of these records that may hold ids"),
    Property("sync.schemas.global", kinds.BOOLEAN, "false",
        "whether the compatibility level of a whole context is copied too: it also decides about the target's other subjects"),
)

# Names after `schema.registry.` that mean what they mean for a Kafka client.
_OF_CLIENTS = tuple(
    replace(known, name=REGISTRY_PREFIX + known.name, roles=frozenset())
    for known in CLIENTS
    if known.effect is Effect.HONOURED and known.name.startswith(("ssl.", "sasl.oauthbearer."))
)

REGISTRIES: tuple[Property, ...] = (
    _own("url", kinds.URLS, "URLs of the cluster's schema registry, with Confluent's REST API; several are instances of one registry"),
    _own("basic.auth.user.info", kinds.PASSWORD, "user and password, as `user:password`"),
    _own("bearer.auth.token", kinds.PASSWORD, "a token that does not change. For tokens of OAuth: sasl.oauthbearer.token.endpoint.url"),
    _own("bearer.auth.logical.cluster", kinds.WORD, "Confluent Cloud's id of the registry, for tokens (header target-sr-cluster)"),
    _own("bearer.auth.identity.pool.id", kinds.WORD, "Confluent Cloud's identity pool, for tokens (header Confluent-Identity-Pool-Id)"),
    *_OF_CLIENTS,
)
