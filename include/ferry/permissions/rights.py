"""Rights as plain values: an operation on a resource of one cluster, and the features that need it (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from ferry.clusters.admin.acl_binding import AclPattern, AclResource

ANYTHING = "*"


class Operation(StrEnum):
    """Operations by the names that kafka-acls takes."""

    READ = "Read"
    WRITE = "Write"
    CREATE = "Create"
    ALTER = "Alter"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"
    ALTER_CONFIGS = "AlterConfigs"


# By the names of AclOperation: an operation, and the operations that imply it (StandardAuthorizerData).
IMPLYING = {"DESCRIBE": {"READ", "WRITE", "DELETE", "ALTER"}, "DESCRIBE_CONFIGS": {"ALTER_CONFIGS"}}


@dataclass(frozen=True, order=True)
class Resource:
    """The object of a right. A literal `*` means every name."""

    kind: AclResource
    name: str
    pattern: AclPattern = AclPattern.LITERAL

    def covers(self, other: Resource) -> bool:
        if self.kind != other.kind:
            return False
        if self == other or self.is_everything:
            return True
        return self.pattern is AclPattern.PREFIXED and not other.is_everything and other.name.startswith(self.name)

    @property
    def is_everything(self) -> bool:
        return self.pattern is AclPattern.LITERAL and self.name == ANYTHING

    def __str__(self) -> str:
        if self.kind is AclResource.CLUSTER:
            return "the cluster"
        kind = self.kind.value.replace("-", " ")
        if self.is_everything:
            return f"every {kind}"
        return f"every {kind} that begins with {self.name}" if self.pattern is AclPattern.PREFIXED else f"{kind} {self.name}"


THE_CLUSTER = Resource(AclResource.CLUSTER, "kafka-cluster")


@dataclass(frozen=True, order=True)
class Right:
    """One operation on one resource; `needed_for` are the features that fail without it."""

    resource: Resource
    operation: Operation
    needed_for: tuple[str, ...]

    def covers(self, other: Right) -> bool:
        enough = self.operation == other.operation or self.operation.name in IMPLYING.get(other.operation.name, ())
        return enough and self.resource.covers(other.resource)


def least(rights: Iterable[Right]) -> tuple[Right, ...]:
    """Removes rights that broader rights include; the broader right inherits the reason. In order of resource and operation."""
    merged: dict[tuple[Resource, Operation], Right] = {}
    for right in rights:
        key = (right.resource, right.operation)
        merged[key] = _with(merged[key], right) if key in merged else right
    kept = [right for right in merged.values() if not any(other != right and other.covers(right) for other in merged.values())]
    for right in merged.values():
        if right not in kept:
            kept = [_with(other, right) if other.covers(right) else other for other in kept]
    return tuple(sorted(kept))


def _with(right: Right, other: Right) -> Right:
    return replace(right, needed_for=tuple(dict.fromkeys((*right.needed_for, *other.needed_for))))
