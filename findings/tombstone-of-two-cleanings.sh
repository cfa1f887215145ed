#!/usr/bin/env bash
# A tombstone in a topic with delete.retention.ms=0 is not removed by the first cleaning, nor by time; its batch then begins after its own end.
#
# One would guess: with delete.retention.ms=0 a tombstone goes with the first cleaning. And the base timestamp of a batch is the time of a
# record in it, not above its max timestamp, so that the timestamp deltas of records are 0 or more.
# What happens: the first cleaning removes the older value, and writes the time of the cleaning plus delete.retention.ms into the batch of the
# tombstone, in place of its base timestamp (KIP-534; attribute bit 6). So the base timestamp is above the max timestamp, and the record's
# delta is negative; clients compute the right time. The tombstone stays then, however long one waits: the log counts as clean until other
# records come. Only the next cleaning after these removes it.
# With: broker 4.4.0, confluent-kafka 2.16.1.
# Hurt: whoever decodes batches and takes a base timestamp for a time, or deltas for unsigned; whoever waits for a quiet compacted topic to
# forget a key; whoever sends such a batch to another broker with its bits as they are.
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
import socket
import struct
import sys
import time

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

servers, release = sys.argv[1:]
BASE = 1_700_000_000_000

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


def batches():
    """(offset, attributes, base timestamp, max timestamp, timestamp delta of the first record) of the log, by a Fetch request of version 4."""
    name = struct.pack(">h", 1) + b"t"
    body = struct.pack(">iiiibi", -1, 100, 1, 1 << 20, 0, 1) + name + struct.pack(">iiqi", 1, 0, 0, 1 << 20)
    request = struct.pack(">hhihs", 1, 4, 1, 1, b"x") + body
    host, port = servers.split(":")
    with socket.create_connection((host, int(port)), 30) as connection, connection.makefile("rwb") as stream:
        stream.write(struct.pack(">i", len(request)) + request)
        stream.flush()
        answer = stream.read(struct.unpack(">i", stream.read(4))[0])
    at = 4 + 4 + 4 + 3 + 4 + 22  # correlation, throttle time, topics, the name, partitions, and the partition up to its aborted transactions
    aborted, = struct.unpack_from(">i", answer, at)
    at += 4 + 16 * max(aborted, 0) + 4
    found = []
    while at + 61 < len(answer):
        offset, length = struct.unpack_from(">qi", answer, at)
        attributes, _, base, largest = struct.unpack_from(">hiqq", answer, at + 21)
        found.append((offset, attributes, base, largest, delta(answer[at + 61 : at + 12 + length])))
        at += 12 + length
    return found


def delta(record):
    """The timestamp delta of a record: behind its length (a varint) and its attributes (a byte) stands a zigzag varint."""
    at = next(index for index, byte in enumerate(record) if byte < 128) + 2
    value = shift = 0
    while True:
        value |= (record[at] & 127) << shift
        if record[at] < 128:
            return (value >> 1) ^ -(value & 1)
        at, shift = at + 1, shift + 7


def put(key, value, moment):
    producer.produce("t", value, key, timestamp=BASE + moment)
    assert producer.flush(60) == 0


def until(holds, seconds=60):
    end = time.monotonic() + seconds
    while not holds(batches()) and time.monotonic() < end:
        time.sleep(0.5)
    return holds(batches())


def tombstone(found):
    return [batch for batch in found if batch[0] == 1]


config = {"cleanup.policy": "compact", "delete.retention.ms": "0", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "1000"}
created(AdminClient({"bootstrap.servers": servers, "log_level": 0}), "t", **config)
producer = Producer({"bootstrap.servers": servers, "log_level": 0})
put("k", "v", 10)
put("k", None, 20)
put("m", "x", 30)
time.sleep(1.5)
put("z", "1", 2_000)  # the next segment: now the first one can be cleaned
cleaned = until(lambda found: found[0][0] == 1)
time.sleep(20)
quiet = tombstone(batches())
print(f"{release}: cleaned once: {cleaned}; 20 s later the tombstone is there: {bool(quiet)}")
if not quiet:
    sys.exit(1)
_, attributes, base, largest, first = quiet[0]
print(f"{release}: its batch: attributes {attributes:#x}, base timestamp {base}, max timestamp {largest}, delta of the record {first}")
put("z", "2", 4_000)
time.sleep(1.5)
put("y", "1", 6_000)
gone = until(lambda found: not tombstone(found))
print(f"{release}: gone after other records came: {gone}")
sys.exit(not (cleaned and attributes & 0x40 and base > largest == base + first == BASE + 20 and gone))
PYTHON

answer=0
for release in 4.4.0; do
  start_kafka "$release" 'log.cleaner.backoff.ms=200'
  "$work/venv/bin/python" "$work/look.py" "$servers" "$release" || answer=1
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
done
exit "$answer"
