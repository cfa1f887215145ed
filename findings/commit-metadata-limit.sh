#!/usr/bin/env bash
# The limit of the text that a group commits beside an offset (offset.metadata.max.bytes, 4096) counts no bytes.
#
# One would guess: 4096 bytes of UTF-8, as the name of the setting says, and as the request carries the text.
# What happens: the broker counts Java's chars, that is UTF-16 code units. 4096 times a letter of three bytes (12,288 bytes) is stored; 2049
# characters from beyond U+FFFF (8,196 bytes, but 4,098 code units) are refused with OFFSET_METADATA_TOO_LARGE.
# With: brokers 3.4.1 and 4.4.0, kafka-python 3.0.12.
# Hurt: whoever copies commits to a store that holds as many bytes as the setting says, or cuts a text to 4096 code points or bytes before a
# commit: the first loses texts that Kafka took, the second is refused, or cuts what would have fitted.
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
"$work/venv/bin/pip" install -q --disable-pip-version-check confluent-kafka==2.16.1 kafka-python==3.0.12

cat >"$work/look.py" <<'PYTHON'
import sys
import time

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.errors import OffsetMetadataTooLargeError

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


def commit(text):
    try:
        consumer.commit({key: OffsetAndMetadata(1, text, -1)})
    except OffsetMetadataTooLargeError:
        return "refused"
    return "stored" if consumer.committed(key, metadata=True).metadata == text else "changed"


key = TopicPartition(created(AdminClient({"bootstrap.servers": servers, "log_level": 0}), "t"), 0)
consumer = KafkaConsumer(bootstrap_servers=servers, group_id="g", enable_auto_commit=False)
texts = {"4096 of 1 byte": "x" * 4096, "4097 of 1 byte": "x" * 4097, "4096 of 3 bytes": "\u20ac" * 4096,
         "2048 of 4 bytes": "\U0001f600" * 2048, "2049 of 4 bytes": "\U0001f600" * 2049}
found = [commit(text) for text in texts.values()]
for (name, text), became in zip(texts.items(), found):
    print(f"{release}: {name}: {len(text.encode()):,} bytes, {len(text.encode('utf-16-le')) // 2:,} code units: {became}")
consumer.close()
sys.exit(found != ["stored", "refused", "stored", "stored", "refused"])
PYTHON

answer=0
for release in 3.4.1 4.4.0; do
  start_kafka "$release"
  "$work/venv/bin/python" "$work/look.py" "$servers" "$release" || answer=1
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
done
exit "$answer"
