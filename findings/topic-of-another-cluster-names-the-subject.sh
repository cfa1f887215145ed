#!/usr/bin/env bash
# confluent-kafka for Python writes a topic's schemas under another subject, or refuses to write, because of what was set for a topic of that
# name in another cluster.
#
# One would guess: without a setting the subject of topic "orders" is "orders-value" (TopicNameStrategy), whatever else the registry holds. What
# somebody sets for another Kafka cluster that shares the registry counts there.
# What happens: the default asks the registry for associations of "orders" first, in all clusters, as it does not know its own. Cluster b
# associates its "orders" with the subject "billing": the producer of cluster a registers its schema as billing. Once cluster a has one too,
# writing is refused ("Multiple associated subjects found"). With subject.name.strategy.kafka.cluster.id each is right, and with
# "subject.name.strategy.type": "TOPIC" it is orders-value.
# With: confluent-kafka 2.16.1, fastavro 1.13.1, the client's own mock registry.
# Hurt: clusters that hold the same topics, such as source and target of a replication or test and production, with one registry: an
# association for the one changes or stops producers of the other. Set the strategy or the cluster's id.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check "confluent-kafka[avro,schemaregistry]==2.16.1" fastavro==1.13.1

cat >"$work/look.py" <<'PYTHON'
import json
import sys

from confluent_kafka.schema_registry import AssociationCreateOrUpdateInfo, AssociationCreateOrUpdateRequest, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import SerializationContext, SerializationError

client = SchemaRegistryClient.new_client({"url": "mock://registry"})


def associate(cluster, subject):
    info = AssociationCreateOrUpdateInfo(subject=subject, association_type="value", lifecycle="STRONG")
    client.create_association(AssociationCreateOrUpdateRequest("orders", cluster, f"{cluster}-orders", "topic", [info]))


def subject(name, **conf):
    """The subject that a new producer's schema is registered under, or the error."""
    before = {one: client.get_versions(one) for one in client.get_subjects()}
    serialize = AvroSerializer(client, json.dumps({"type": "record", "name": name, "fields": []}), conf=conf)
    try:
        serialize({}, SerializationContext("orders", "value"))
    except SerializationError as problem:
        return str(problem)
    (found,) = [one for one in client.get_subjects() if client.get_versions(one) != before.get(one)]
    return found


here = {"subject.name.strategy.conf": {"subject.name.strategy.kafka.cluster.id": "a"}}
seen = {"no association": subject("First")}
associate("b", "billing")
seen["one in cluster b"] = subject("Second")
seen["one in cluster b, id set to a"] = subject("Third", **here)
associate("a", "shop")
seen["one in each cluster"] = subject("Fourth")
seen["one in each cluster, id set to a"] = subject("Fifth", **here)
seen["one in each cluster, strategy TOPIC"] = subject("Sixth", **{"subject.name.strategy.type": "TOPIC"})
for when, found in seen.items():
    print(f"{when}: {found}")
told = ["orders-value", "billing", "orders-value", "Multiple associated subjects found for topic orders", "shop", "orders-value"]
sys.exit(list(seen.values()) != told)
PYTHON
"$work/venv/bin/python" "$work/look.py"
