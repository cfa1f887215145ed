"""Every property that Ferry knows, with its kind, default, meaning and effect: what is accepted, checked and documented."""

from collections.abc import Mapping

from ferry.config.registry.clients import CLIENTS
from ferry.config.registry.ferry import FERRY
from ferry.config.registry.flows import FLOWS
from ferry.config.registry.property import Property, Scope
from ferry.config.registry.schemas import REGISTRIES, SCHEMAS
from ferry.config.registry.workers import FILE, WORKERS

FILE_PROPERTIES: Mapping[str, Property] = {known.name: known for known in FILE}
FLOW_PROPERTIES: Mapping[str, Property] = {known.name: known for known in FLOWS + SCHEMAS + FERRY if known.scope is not Scope.CLUSTER}
CLUSTER_PROPERTIES: Mapping[str, Property] = {known.name: known for known in FERRY if known.scope is Scope.CLUSTER or known.of_target}
CLIENT_PROPERTIES: Mapping[str, Property] = {known.name: known for known in CLIENTS}
REGISTRY_PROPERTIES: Mapping[str, Property] = {known.name: known for known in REGISTRIES}
WORKER_PROPERTIES: Mapping[str, Property] = {known.name: known for known in WORKERS}
