"""What users write to take part in a copy: message handlers and assignment listeners (KIP-3), for users to import.

Knows nothing of Ferry but its errors.
Begin with `interface.py`: `MessageHandler` changes, drops, re-keys or multiplies records;
`AssignmentListener` hears which partitions a lane is about to copy and has copied.
"""

from __future__ import annotations

from ferry.handling.interface import Assignment, AssignmentListener, MessageHandler, Record

__all__ = ["Assignment", "AssignmentListener", "MessageHandler", "Record"]
