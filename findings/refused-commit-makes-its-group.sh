#!/usr/bin/env bash
# On Kafka 3 a commit that the broker refuses still makes its group: the list shows one that never committed anything.
#
# One would guess: a refused request changes nothing. A group begins with its first member or its first commit.
# What happens: for a group that does not exist, a commit whose text (metadata) is too long is refused with OFFSET_METADATA_TOO_LARGE, and
# afterwards the group is listed, empty and without any offset; so does a commit in a transaction, also after its abort. Kafka 4.4.0
# refuses the same two, and lists no group. A commit for a topic that does not exist makes no group on either.
# With: brokers 3.9.1 (classic coordinator, its default) and 4.4.0, confluent-kafka 2.16.1.
# Hurt: whoever lists the groups of a cluster to compare or copy them, or takes a group in the list for proof that its commit arrived.
set -euo pipefail

work=$(mktemp -d)
pids=()
cleanup() {
  for pid in "${pids[@]}"; do
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  rm -rf "$work"
}
trap cleanup EXIT

# One broker of a release, which is its own controller. Sets $servers; $2: more lines for its properties.
start_kafka() {
  local directory="$work/kafka-$1" ports
  mkdir -p "$directory"
  cat >"$directory/pom.xml" <<XML
<project><modelVersion>4.0.0</modelVersion><groupId>finding</groupId><artifactId>kafka</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$1</version></dependency></dependencies>
</project>
XML
  mvn -q -f "$directory/pom.xml" dependency:copy-dependencies -DoutputDirectory="$directory/jars" >"$directory/mvn.txt" 2>&1 ||
    { cat "$directory/mvn.txt"; exit 2; }
  read -r -a ports < <(python3 -c '
import socket
found = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(one.getsockname()[1] for one in found))')
  servers="127.0.0.1:${ports[0]}"
  cat >"$directory/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:${ports[1]}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://$servers,CONTROLLER://127.0.0.1:${ports[1]}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$directory/logs
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
${2:-}
PROPERTIES
  java -cp "$directory/jars/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c "$directory/server.properties" >"$directory/format.txt" 2>&1 ||
    { cat "$directory/format.txt"; exit 2; }
  java -Xmx512m -cp "$directory/jars/*" kafka.Kafka "$directory/server.properties" >"$directory/broker.txt" 2>&1 &
  pids+=($!)
}

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check confluent-kafka==2.16.1

cat >"$work/look.py" <<'PYTHON'
import sys
import time

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

servers, release = sys.argv[1:]


def created(admin, name, **config):
    """A topic of one partition; waits for the broker, which may still be starting."""
    deadline = time.monotonic() + 120
    while True:
        try:
            admin.create_topics([NewTopic(name, 1, 1, config=config)], request_timeout=10)[name].result(20)
            return name
        except KafkaException as problem:
            if problem.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return name
            if time.monotonic() > deadline:
                raise
            time.sleep(1)


def plain(group, position):
    """The name of the error that a plain commit gets."""
    try:
        (future,) = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, [position])]).values()
        (answer,) = future.result(60).topic_partitions
    except KafkaException as problem:
        return problem.args[0].name()
    return answer.error.name() if answer.error else "no error"


def in_transaction(group, position):
    """The name of the error that the commit of a transaction gets; the transaction is aborted."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": group, "log_level": 0})
    producer.init_transactions(60)
    producer.begin_transaction()
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "log_level": 0})
    error = "no error"
    try:
        producer.send_offsets_to_transaction([position], consumer.consumer_group_metadata(), 60)
    except KafkaException as problem:
        error = problem.args[0].name()
    producer.abort_transaction(60)
    consumer.close()
    return error


def offsets(group):
    (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    return future.result(60).topic_partitions


admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
created(admin, "t")
long = TopicPartition("t", 0, 5, metadata="x" * 5_000)
missing = TopicPartition("no-such-topic", 0, 5)
# A first commit that is taken: from then on the coordinator is there.
for _ in range(120):
    if plain("taken", TopicPartition("t", 0, 5)) == "no error":
        break
    time.sleep(1)
errors = {
    "plain-long": plain("plain-long", long),
    "transaction-long": in_transaction("transaction-long", long),
    "plain-missing": plain("plain-missing", missing),
}
listing = admin.list_consumer_groups(request_timeout=60).result(60)
states = {one.group_id: one.state.name for one in listing.valid}
positions = {group: len(offsets(group)) for group in states}
print(f"{release}: errors {errors}; listed {states}; positions {positions}")
refused = errors["plain-long"] == errors["transaction-long"] == "OFFSET_METADATA_TOO_LARGE" and errors["plain-missing"] != "no error"
made = {"plain-long", "transaction-long"} if release == "3.9.1" else set()
sys.exit(not (refused and set(states) == made | {"taken"} and all(positions[group] == 0 for group in made)))
PYTHON

answer=0
for release in 3.9.1 4.4.0; do
  start_kafka "$release"
  "$work/venv/bin/python" "$work/look.py" "$servers" "$release" || answer=1
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
done
exit "$answer"
