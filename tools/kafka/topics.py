"""Topics, as an operator deletes them."""

from __future__ import annotations

import time
from collections.abc import Mapping

from confluent_kafka.admin import AdminClient

# A broker that is busy deletes in seconds.
DELETED_SECONDS = 60.0
ANSWER_SECONDS = 30.0


def delete_topics(settings: Mapping[str, str], *topics: str) -> None:
    """Delete the topics and wait until the cluster no longer names them. `settings`: librdkafka's. KafkaException, TimeoutError.

    The controller answers before the brokers have forgotten a topic: whoever asks them meanwhile may find it as if it was there.
    """
    if not topics:
        return
    client = AdminClient(dict(settings))
    for future in client.delete_topics(list(topics)).values():
        future.result(ANSWER_SECONDS)
    deadline = time.monotonic() + DELETED_SECONDS
    while left := set(topics) & set(client.list_topics(timeout=ANSWER_SECONDS).topics):
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {DELETED_SECONDS:.0f} s there are still {', '.join(sorted(left))}")
        time.sleep(0.02)
