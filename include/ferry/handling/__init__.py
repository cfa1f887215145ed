"""What users write to take part in a copy: message handlers and assignment listeners (KIP-3). Their whole interface is in this package.

A message handler changes, drops, re-keys or multiplies records on their way; see `MessageHandler`. An assignment listener is told which
partitions a lane is about to copy and has copied; see `AssignmentListener`.
"""

from __future__ import annotations

from ferry.handling.interface import Assignment, AssignmentListener, MessageHandler, Record

__all__ = ["Assignment", "AssignmentListener", "MessageHandler", "Record"]
