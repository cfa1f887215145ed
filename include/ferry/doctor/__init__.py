"""`ferry doctor`: gathers facts about the machine, the clusters and the flows, and judges them. Writes nothing.

Knows clusters, rights, and how a flow is monitored.
Begin with `diagnosis.py`; the `_checks` modules judge (pure).
"""
