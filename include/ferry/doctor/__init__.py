"""`ferry doctor`: collects facts about the machine, the clusters and the flows, and checks them. Writes nothing.

Knows clusters, rights, and how a flow is monitored.
Begin with `diagnosis.py`; the `_checks` modules check the facts (pure).
"""
