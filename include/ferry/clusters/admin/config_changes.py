"""Changes single entries of topics' own configs.

IncrementalAlterConfigs (KIP-339) changes only the entries that it names. A cluster that does not offer it gets AlterConfigs instead. That
replaces all entries that a topic sets itself: so Ferry reads them first, and sends them along. A change that somebody makes between the two
requests is lost. If the cluster hides the value of an entry, Ferry cannot send it along, and changes nothing of that topic.
"""

import warnings
from collections.abc import Mapping

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from kafka.protocol.admin import IncrementalAlterConfigsRequest

from ferry.clusters.admin.cluster_admin import TOPICS_A_REQUEST, ClusterAdmin
from ferry.clusters.admin.describe import ConfigOrigin
from ferry.clusters.net.connections import ClusterConnection
from ferry.clusters.net.partitions import chunks
from ferry.errors import ChangeRefused, FerryError

# By topic and name of an entry: its new value. None: the topic shall no longer set the entry.
Changes = Mapping[str, Mapping[str, str | None]]


class ConfigAdmin(ClusterAdmin):
    """Changes configs of one cluster's topics."""

    def alter_topic_configs(self, changes: Changes) -> dict[str, FerryError]:
        """Set or remove entries of topics' own configs; the errors by topic. A topic whose change is refused keeps its whole config."""
        if not changes:
            return {}
        if IncrementalAlterConfigsRequest.API_KEY in self._asked("asking what it can do", ClusterConnection.newest):
            return self._altered(changes, "incremental_alter_configs", {name: _single(name, entries) for name, entries in changes.items()})
        return self._replaced(changes)

    def _replaced(self, changes: Changes) -> dict[str, FerryError]:
        found, problems = self.visible_configs(changes, to_alter=True)
        resources = {}
        for name, entries in found.items():
            own = {key: entry.value for key, entry in entries.items() if entry.origin is ConfigOrigin.TOPIC} | dict(changes[name])
            hidden = sorted(key for key in own.keys() - changes[name].keys() if own[key] is None)
            if hidden:
                text = f"cluster {self.alias} cannot change single configs of topic {name}, and hides its {', '.join(hidden)}"
                problems[name] = ChangeRefused(f"{text}: Ferry would remove them")
            else:
                resources[name] = ConfigResource(
                    ResourceType.TOPIC, name, set_config={key: value for key, value in own.items() if value is not None}
                )
        with warnings.catch_warnings():  # the client advises against this request, for the reason above
            warnings.simplefilter("ignore", DeprecationWarning)
            return problems | self._altered(changes, "alter_configs", resources)

    def _altered(self, changes: Changes, method: str, resources: Mapping[str, ConfigResource]) -> dict[str, FerryError]:
        def explain(name: str) -> tuple[str, str]:
            return f"changing {', '.join(sorted(changes[name]))} of topic {name}", f"AlterConfigs on topic {name}"

        requests = ({name: resources[name] for name in chunk} for chunk in chunks(sorted(resources), TOPICS_A_REQUEST))
        return self._changed(method, requests, explain)


def _single(name: str, entries: Mapping[str, str | None]) -> ConfigResource:
    alterations = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET)
        for key, value in sorted(entries.items())
    ]
    return ConfigResource(ResourceType.TOPIC, name, incremental_configs=alterations)
