"""The interface of code that users write: message handlers, assignment listeners (KIP-3) and token sources. Users import it.

Knows no other package.
Begin with `interface.py`: `MessageHandler` changes, drops, re-keys or multiplies records;
Ferry calls an `AssignmentListener` with the partitions before a lane copies them and afterwards; `TokenSource` gives tokens for logins.
"""

from ferry.handling.interface import Assignment, AssignmentListener, MessageHandler, Record, TokenSource

__all__ = ["Assignment", "AssignmentListener", "MessageHandler", "Record", "TokenSource"]
