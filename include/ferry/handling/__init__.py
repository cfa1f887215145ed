"""The interface of code that users write: message handlers and assignment listeners (KIP-3). Users import it.

Knows no other package.
Begin with `interface.py`: `MessageHandler` changes, drops, re-keys or multiplies records;
`AssignmentListener` hears which partitions a lane is about to copy and has copied.
"""

from ferry.handling.interface import Assignment, AssignmentListener, MessageHandler, Record

__all__ = ["Assignment", "AssignmentListener", "MessageHandler", "Record"]
