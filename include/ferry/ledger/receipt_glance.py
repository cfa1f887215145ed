"""Reads a few fields of a receipt without decoding all of it (pure).

A ledger may hold millions of receipts, and most readers need few of them: losses, or those of some partitions. Decoding a receipt takes
many times as long as fetching it. So a regular expression reads the fields that decide, if the bytes are exactly as `encode_receipt` writes
them. Any other record (another format version, fields of a newer Ferry, names that JSON escapes) gives None: the caller decodes it, and
`decode_receipt` raises errors.
"""

import re
from typing import NamedTuple

from ferry.ledger.formats import FORMAT_VERSION
from ferry.ledger.receipts import ReceiptKind

_PARTS = {
    # Texts without JSON escapes, numbers of at most 64 bits.
    "TEXT": r'"[^"\\\x00-\x1f\x80-\xff]*"',
    "NUMBER": r"-?(?:0|[1-9]\d{0,17})",
    "NUMBERS": r"[-+.\de,\[\]]*",
    "KIND": "|".join(ReceiptKind),
    "VERSION": str(FORMAT_VERSION),
}


def _pattern(template: str) -> re.Pattern[bytes]:
    return re.compile(re.sub("[A-Z]+", lambda part: _PARTS[part.group()], template).encode())


_KEY = _pattern(r'\{"id":TEXT,"kind":"(KIND)","partition":(NUMBER),(?:"series":TEXT,)?"start":NUMBER,"topic":(TEXT)\}')
_VALUE = _pattern(
    r'\{"bytes":NUMBER,(?:"delays":NUMBERS,)?"downstream_end":(NUMBER),"end":NUMBER,"forwarded":NUMBER,(?:"from_target":NUMBER,)?'
    r'(?:"handled":NUMBERS,)?"reason":TEXT,"records":NUMBER,"reframed":NUMBER,(?:"remote_epoch":NUMBER,)?"remote_id":TEXT,"remote_topic":(TEXT),"run":TEXT,'
    r'"runs":TEXT,"source_epoch":NUMBER,"timestamps":\[NUMBER,NUMBER\],"transactions":NUMBER,"version":VERSION(?:,"written":NUMBERS)?\}'
)


class Glance(NamedTuple):
    """The fields of a receipt that decide whether a reader needs it; see Receipt."""

    kind: str
    topic: str
    partition: int
    remote_topic: str
    downstream_end: int


def glance(key: bytes, value: bytes) -> Glance | None:
    """These fields; None: decode the record."""
    named, said = _KEY.fullmatch(key), _VALUE.fullmatch(value)
    if named is None or said is None:
        return None
    kind, partition, topic = named.groups()
    downstream_end, remote_topic = said.groups()
    return Glance(kind.decode(), topic[1:-1].decode(), int(partition), remote_topic[1:-1].decode(), int(downstream_end))
