"""Turns `mm2.properties` into frozen, checked objects: clusters, flows, client settings, secrets.

Knows `handling` and `policy`. Does not connect to a cluster.
Begin with `loader.py`, then `flow.py`; `registry` lists every property.
"""

from ferry.config.cluster import Cluster
from ferry.config.connections import ConnectionFields
from ferry.config.flow import Flow
from ferry.config.loader import FerryConfig, load_config
from ferry.config.secret import Secret
from ferry.config.sources import ClientRole

__all__ = ["ClientRole", "Cluster", "ConnectionFields", "FerryConfig", "Flow", "Secret", "load_config"]
