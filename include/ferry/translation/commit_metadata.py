"""Which commit metadata go with a translated offset (pure).

Only an application knows what its metadata mean. Some count offsets: those of Confluent's Parallel Consumer say which records behind the
committed offset are done. If offsets shift, its consumer would skip other records. Metadata of Kafka Streams hold times, in base64: a
version, the partition's time and, from version 2 on, times of processors (TopicPartitionMetadata).
"""

import binascii
from dataclasses import replace

from ferry.translation.translated import Inexact, Translation

# Earlier versions of Ferry committed it where a group had none; Kafka Streams 2.8 does not start with it.
EARLIER = "ferry:"
_STREAMS_VERSIONS, _STREAMS_BYTES = (1, 2), 9


def may_count_offsets(metadata: str) -> bool:
    """Whether there are metadata that are not of Kafka Streams. confluent-kafka ends every text with a NUL, also an empty one."""
    try:
        raw = binascii.a2b_base64(metadata.rstrip("\0"), strict_mode=True)
    except ValueError:
        return True
    return bool(raw) and not (raw[0] in _STREAMS_VERSIONS and len(raw) >= _STREAMS_BYTES)


def carried(metadata: str, translation: Translation | None, *, unshifted: bool) -> tuple[str, Translation | None]:
    """The metadata to commit on the other cluster, and the translation: if metadata are left out, it is not exact."""
    if metadata.startswith(EARLIER):
        return "", translation
    if unshifted or not may_count_offsets(metadata):
        return metadata, translation
    return "", translation and replace(translation, reason=translation.reason or Inexact.METADATA)
