"""What a new cluster of a release of Kafka offers: the versions of its requests, and its finalized features.

How the releases answer otherwise is where the answers are made: `git grep release` in this directory.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

Release = tuple[int, int]
_FEATURES: Mapping[Release, Mapping[str, int]] = {
    (2, 8): {},
    (3, 9): {"metadata.version": 21},
    (4, 0): {"group.version": 1, "metadata.version": 25},
    (4, 3): {
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "metadata.version": 30,
        "share.version": 1,
        "streams.version": 1,
    },
    (4, 4): {
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "metadata.version": 33,
        "share.version": 2,
        "streams.version": 1,
    },
}
# What kafka-python's table lacks: DescribeQuorum of a broker with KRaft, and the newest release.
_VERSIONS: Mapping[Release, Mapping[int, tuple[int, int]]] = {
    **BROKER_API_VERSIONS,
    (3, 9): {**BROKER_API_VERSIONS[3, 9], 55: (0, 2)},
    (4, 4): {**BROKER_API_VERSIONS[4, 3], 18: (0, 5), 28: (0, 6), 42: (0, 3)},
}


def request_versions(release: Release) -> dict[int, tuple[int, int]]:
    """The oldest and the newest version of each request, by its key."""
    return dict(_VERSIONS[release])


def features(release: Release, transaction_version: int) -> dict[str, int]:
    """The finalized features. KeyError for a release that is not listed above."""
    return {**_FEATURES[release], **({"transaction.version": transaction_version} if transaction_version else {})}
