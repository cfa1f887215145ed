"""The rights that each command needs on both clusters, and what a cluster hides from the user.

Knows `clusters`, `config` and `policy`.
Begin with `required.py`.
"""
