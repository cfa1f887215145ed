#!/usr/bin/env bash
# Asked with read_committed for the record with the largest timestamp, the broker answers "none" while a newer record's transaction is open.
#
# One would guess: the largest timestamp among the records that read_committed may read; the answers for other times are so.
# What happens: first the largest of all records is found. If it is beyond the last stable offset, the answer is offset -1 and timestamp -1, as
# for an empty partition, although hundreds of committed records are there. A time that only the open record has reached finds nothing
# either, and a time of a committed record is found.
# With: brokers 3.9.1 and 4.4.0, confluent-kafka 2.16.1.
# Hurt: whoever measures by it how fresh a topic is, or whether it is empty: on a busy topic with transactions the answer is "nothing"
# most of the time.
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

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

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


def found(spec, isolation=IsolationLevel.READ_COMMITTED):
    """The offset and the timestamp that the broker answers."""
    (future,) = admin.list_offsets({TopicPartition("t", 0): spec}, isolation_level=isolation).values()
    answer = future.result(60)
    return answer.offset, answer.timestamp


admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
created(admin, "t")
now = int(time.time() * 1_000)
plain = Producer({"bootstrap.servers": servers, "log_level": 0})
for number in range(300):
    plain.produce("t", b"x", timestamp=now - 1_000 + number)
assert plain.flush(60) == 0
before = found(OffsetSpec.max_timestamp())
transaction = Producer({"bootstrap.servers": servers, "transactional.id": "x", "log_level": 0})
transaction.init_transactions(60)
transaction.begin_transaction()
transaction.produce("t", b"x", timestamp=now)
assert transaction.flush(60) == 0
during = found(OffsetSpec.max_timestamp())
all_records = found(OffsetSpec.max_timestamp(), IsolationLevel.READ_UNCOMMITTED)
stable = found(OffsetSpec.latest())[0]
earlier = found(OffsetSpec.for_timestamp(now - 701))
transaction.abort_transaction(60)
print(f"{release}: 300 committed records, the last one at {now - 701}: largest timestamp {before}")
print(f"  with an open transaction: {during}, read_uncommitted {all_records}, stable end {stable}, the time of the last committed one {earlier}")
last = (299, now - 701)
sys.exit(not (before == last and during == (-1, -1) and all_records == (300, now) and stable == 300 and earlier == last))
PYTHON

answer=0
for release in 3.9.1 4.4.0; do
  start_kafka "$release"
  "$work/venv/bin/python" "$work/look.py" "$servers" "$release" || answer=1
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
done
exit "$answer"
