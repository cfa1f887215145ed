"""What a cluster lacks is said; what correctness stands on is not done without."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kafka.protocol.producer import InitProducerIdRequest
from tests.opened import lacking, lacking_features

from ferry.clusters.admin.api_versions import SOURCE_NEEDS, SOURCE_WISHES, TARGET_NEEDS, TARGET_WISHES, Feature, Lack
from ferry.config import Flow
from ferry.errors import BrokerTooOld

pytestmark = pytest.mark.brokers

OF_TOMORROW = Feature(InitProducerIdRequest, 99, "9.9", "something is not so")


def test_the_newest_release_has_all_features(flow_factory: Callable[..., Flow]) -> None:
    assert lacking_features(flow_factory("A->B.topics = x"), [], []) == ()
    for ability in (*SOURCE_NEEDS, *SOURCE_WISHES, *TARGET_NEEDS, *TARGET_WISHES):
        assert ability.version <= ability.request.max_version  # type: ignore[attr-defined]


def test_a_missing_feature_is_named(flow_factory: Callable[..., Flow]) -> None:
    cluster = flow_factory("A->B.topics = x").target
    assert lacking(cluster, [], needs=(), wishes=[OF_TOMORROW, *TARGET_WISHES]) == (
        Lack(f"cluster {cluster.alias} is older than Kafka 9.9", "something is not so"),
    )
    with pytest.raises(
        BrokerTooOld, match=rf"cluster {cluster.alias} .* is older than Kafka 9\.9: something is not so; upgrade the cluster to 9\.9"
    ):
        lacking(cluster, [], needs=[OF_TOMORROW], wishes=())
