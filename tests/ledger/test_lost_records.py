"""What to do about lost records."""

from __future__ import annotations

import pytest

from ferry.ledger.lost_records import data_lost

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("topics", "retention", "named"),
    [
        (["orders"], True, ""),
        (
            ["app-x-repartition", "app-x-repartition", "app-y-repartition"],
            False,
            "exclude app-x-repartition, app-y-repartition: Kafka Streams",
        ),
        (["orders", "app-x-repartition"], True, "and exclude app-x-repartition: Kafka Streams"),
    ],
)
def test_no_retention_keeps_what_kafka_streams_deletes(topics: list[str], retention: bool, named: str) -> None:
    step = data_lost("lost", topics).next_step
    assert ("raise the source's retention" in step, named in step) == (retention, True)
    assert step.startswith("note what is lost (ferry ledger): it cannot be copied any more; ")
    assert step.endswith(", so that it does not happen again; then end this warning: ferry ack-loss")
