"""ACLs of one cluster: describes all of them, and creates and deletes single ones.

Ferry describes ACLs with kafka-python, because librdkafka (2.16) drops the error of a DescribeAcls response: a cluster that hides its ACLs
from the user, or that has no authorizer, would look like a cluster without ACLs.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from confluent_kafka.admin import AclBinding as KafkaAcl
from confluent_kafka.admin import AclBindingFilter, AclOperation, AclPermissionType, ResourcePatternType, ResourceType
from kafka.protocol.admin import DescribeAclsRequest

from ferry.clusters.admin.acl_binding import OPERATIONS, AclBinding, AclPattern, AclResource
from ferry.clusters.admin.cluster_admin import ClusterAdmin
from ferry.clusters.net.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.net.error_policy import DESCRIBE_ACLS, Action
from ferry.clusters.net.failures import denied
from ferry.clusters.net.partitions import chunks
from ferry.clusters.net.shared_connection import ConnectedCluster
from ferry.errors import ClusterUnreachable, FerryError

# A controller refuses requests that add more than 10,000 ACLs, and needs long for large ones.
ACLS_A_REQUEST = 500
# A cluster with tens of thousands of ACLs answers within seconds. A broker that hangs must not delay a run for longer.
ANSWER_MILLISECONDS = 30_000
# Codes of ResourceType, PatternType, AclOperation and AclPermissionType (org.apache.kafka.common.resource, …common.acl)
ANY, PREFIXED = 1, 4
_RESOURCES = {2: AclResource.TOPIC, 3: AclResource.GROUP, 4: AclResource.CLUSTER, 5: AclResource.TRANSACTIONAL_ID}
_LATER_OPERATIONS = {13: "CREATE_TOKENS", 14: "DESCRIBE_TOKENS", 15: "TWO_PHASE_COMMIT"}
_OPERATIONS = dict(enumerate(OPERATIONS, 2)) | _LATER_OPERATIONS
_PERMISSIONS = {2: "DENY", 3: "ALLOW"}


def read_acls(cluster: ConnectedCluster, *, to_alter: bool = False) -> frozenset[AclBinding] | None:
    """Every ACL of the cluster. None: it has no authorizer, or does not offer to describe ACLs, like services without Kafka's ACLs.

    NotAuthorized without Describe on the cluster, ClusterUnreachable. `to_alter`: the caller will change ACLs, so a message names Alter,
    which includes Describe.
    """
    request = DescribeAclsRequest(
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=ANY,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
        min_version=1,  # names patterns; every broker since 2.0
    )
    try:
        if DescribeAclsRequest.API_KEY not in cluster.ask(ClusterConnection.newest):
            return None
        answer = cluster.ask(ClusterConnection.send, request, None, ANSWER_MILLISECONDS)
    except (RequestNotSent, RequestLost) as problem:
        raise ClusterUnreachable(f"{cluster.cluster.where}: describing its ACLs failed: {problem}") from problem
    match DESCRIBE_ACLS.action(answer.error_code):
        case Action.GO_ON:
            return frozenset(_bindings(answer))
        case Action.NOTHING:
            return None
        case Action.DENIED:
            right = "Alter on the cluster" if to_alter else DESCRIBE_ACLS.right(answer.error_code)
            raise denied(cluster.cluster, "describing its ACLs", right)
        case _:
            told = f"{DESCRIBE_ACLS.told(answer.error_code)} {answer.error_message or ''}".rstrip()
            raise ClusterUnreachable(f"{cluster.cluster.where}: describing its ACLs failed: {told}")


class AclAdmin(ClusterAdmin):
    """Changes the ACLs of one cluster."""

    def create_acls(self, bindings: Iterable[AclBinding]) -> dict[AclBinding, FerryError]:
        """Create ACLs of topics, groups and transactional ids; the errors by ACL. An ACL that exists already is no error."""
        return self._each("creating", sorted(set(bindings)), "create_acls", KafkaAcl)

    def delete_acls(self, bindings: Iterable[AclBinding]) -> dict[AclBinding, FerryError]:
        """Delete exactly these ACLs; the errors by ACL. An ACL that does not exist is no error."""
        return self._each("deleting", sorted(set(bindings)), "delete_acls", AclBindingFilter)

    def _each(self, doing: str, bindings: Sequence[AclBinding], method: str, kind: type[KafkaAcl]) -> dict[AclBinding, FerryError]:
        def explain(binding: AclBinding) -> tuple[str, str]:
            return f"{doing} ACL {binding}", "Alter on the cluster"

        some = chunks(bindings, ACLS_A_REQUEST)
        return self._changed(method, ({binding: _kafka_acl(binding, kind) for binding in asked} for asked in some), explain)


def _bindings(answer: Any) -> Iterator[AclBinding]:
    for found in answer.resources:
        resource = _RESOURCES.get(found.resource_type, AclResource.OTHER)
        pattern = AclPattern.PREFIXED if found.pattern_type == PREFIXED else AclPattern.LITERAL
        for acl in found.acls:
            operation = _OPERATIONS.get(acl.operation, str(acl.operation))
            permission = _PERMISSIONS.get(acl.permission_type, str(acl.permission_type))
            yield AclBinding(resource, found.resource_name, pattern, acl.principal, acl.host, operation, permission)


def _kafka_acl(binding: AclBinding, kind: type[KafkaAcl]) -> KafkaAcl:
    resource, pattern = ResourceType[binding.resource.name], ResourcePatternType[binding.pattern.name]
    operation, permission = AclOperation[binding.operation], AclPermissionType[binding.permission]
    return kind(resource, binding.name, pattern, binding.principal, binding.host, operation, permission)
