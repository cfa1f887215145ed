"""One ACL as plain values."""

from dataclasses import astuple, dataclass
from enum import StrEnum
from typing import Self

from ferry.wire.strict_json import text


class AclResource(StrEnum):
    """What an ACL is about."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional-id"
    CLUSTER = "cluster"
    OTHER = "other"  # delegation tokens, users, and kinds that later brokers add


# The operations that librdkafka can write.
_WRITABLE = "ALL READ WRITE CREATE DELETE ALTER DESCRIBE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS IDEMPOTENT_WRITE"
OPERATIONS = tuple(_WRITABLE.split())
PERMISSIONS = ("ALLOW", "DENY")


class AclPattern(StrEnum):
    """How an ACL names its resource."""

    LITERAL = "literal"
    PREFIXED = "prefixed"


@dataclass(frozen=True, order=True)
class AclBinding:
    """One ACL. `operation` and `permission` are Kafka's names (ALL, READ, …; ALLOW, DENY), or the number of one that is not known here."""

    resource: AclResource
    name: str
    pattern: AclPattern
    principal: str
    host: str
    operation: str
    permission: str

    def __str__(self) -> str:
        what = f"{self.resource.value} {self.name} ({self.pattern.value})"
        return f"{self.principal} {self.permission} {self.operation} {what} from {self.host}"

    def document(self) -> list[str]:
        """The ACL as a JSON object."""
        return [str(value) for value in astuple(self)]

    @classmethod
    def of_document(cls, values: list[str]) -> Self:
        """The inverse of `document`; ValueError or TypeError for anything else."""
        resource, name, pattern, *rest = values
        return cls(AclResource(resource), text(name), AclPattern(pattern), *map(text, rest))
