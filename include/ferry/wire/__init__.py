"""Kafka's bytes, and what Ferry does to them: record batches, the choice of a treatment, the internal records. Pure: no I/O anywhere.

`treatment.arrange` is the way in for the copying lane; everything else here serves it, the ledger or the control plane.
"""
