#!/usr/bin/env bash
# A broker forgets an idempotent producer by the timestamps in its records: if they are old, a repeated batch is stored twice.
#
# One would guess: the producer's last sequences are kept for producer.id.expiration.ms (a day) after its last write, by the broker's clock;
# so a batch that is sent again because its answer was lost is recognised.
# What happens: the age is taken from the largest timestamp in the producer's last batch. Records from two days ago make the producer two
# days old: the next check forgets it, DescribeProducers does not list it any more, and the same batch with the same sequence is appended
# once more, with a new offset. With timestamps of today it is recognised and answered with its first offset. Here the check runs each
# second (producer.id.expiration.check.interval.ms).
# With: brokers 3.9.1 and 4.4.0; kafka-python 3.0.12 encodes the requests.
# Hurt: whoever backfills, restores or replicates with the records' own timestamps and enable.idempotence alone.
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
"$work/venv/bin/pip" install -q --disable-pip-version-check kafka-python==3.0.12

cat >"$work/look.py" <<'PYTHON'
import socket
import sys
import time

from kafka.protocol.admin import CreateTopicsRequest, DescribeProducersRequest
from kafka.protocol.parser import KafkaProtocol
from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest
from kafka.record.default_records import DefaultRecordBatchBuilder

host, port = sys.argv[1].split(":")
DAY = 86_400_000


def ask(request, version):
    request.API_VERSION = version
    parser = KafkaProtocol(client_id="finding")
    parser.send_request(request)
    with socket.create_connection((host, int(port)), 30) as connection:
        connection.sendall(parser.send_bytes())
        while True:
            for _, answer in parser.receive_bytes(connection.recv(1 << 16)):
                return answer


def created(name):
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
    topic.configs = [CreateTopicsRequest.CreatableTopic.CreatableTopicConfig(name="retention.ms", value="-1")]
    for _ in range(120):
        try:
            if ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000, validate_only=False), 5).topics[0].error_code in (0, 36):
                return
        except (OSError, IndexError):
            pass
        time.sleep(1)
    raise SystemExit("no topic")


def produced(name, batch):
    """The error and the base offset of a batch."""
    partition = ProduceRequest.TopicProduceData.PartitionProduceData(index=0, records=batch)
    topic = ProduceRequest.TopicProduceData(name=name, partition_data=[partition])
    answer = ask(ProduceRequest(transactional_id=None, acks=-1, timeout_ms=30_000, topic_data=[topic]), 9).responses[0].partition_responses[0]
    return answer.error_code, answer.base_offset


def listed(name):
    topic = DescribeProducersRequest.TopicRequest(name=name, partition_indexes=[0])
    return len(ask(DescribeProducersRequest(topics=[topic]), 0).topics[0].partitions[0].active_producers)


def twice(name, timestamp, seconds):
    """Send one batch, wait until its producer is not listed or the seconds are over, and send it again, byte for byte."""
    created(name)
    for _ in range(60):
        pair = ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1), 4)
        if pair.error_code == 0:
            break
        time.sleep(1)
    builder = DefaultRecordBatchBuilder(2, 0, False, pair.producer_id, pair.producer_epoch, 0, 1 << 16)
    builder.append(0, timestamp, None, b"x", [])
    batch = bytes(builder.build())
    first = produced(name, batch)
    for _ in range(seconds):
        time.sleep(1)
        if not listed(name):
            break
    return first, listed(name), produced(name, batch)


now = int(time.time() * 1_000)
today, old = twice("today", now, 5), twice("old", now - 2 * DAY, 60)
for name, (first, producers, again) in {"today": today, "two days ago": old}.items():
    print(f"{sys.argv[2]}: a record of {name}: error and offset {first}, producers listed {producers}, sent again {again}")
sys.exit(not (today == ((0, 0), 1, (0, 0)) and old == ((0, 0), 0, (0, 1))))
PYTHON

answer=0
for release in 3.9.1 4.4.0; do
  start_kafka "$release" producer.id.expiration.check.interval.ms=1000
  "$work/venv/bin/python" "$work/look.py" "$servers" "$release" || answer=1
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
done
exit "$answer"
