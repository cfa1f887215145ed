#!/usr/bin/env bash
# A consumer that seeks back and closes: the next one of its group begins there in Java, and behind the last record in Python.
#
# One would guess: with auto commit close() commits the consumer's position, so seek() before it is a way to have records again at the next start.
# What happens: ten records are read, then seek() to 3 and close(). Java's consumer commits 3. confluent-kafka's keeps 10: its close commits
# what was delivered, not the position. Without auto commit, commit() after seek() commits 10 too.
# With: broker and Java client 4.4.0, confluent-kafka 2.16.1.
# Hurt: error handling that seeks back to the failed record and ends the process to be started again: the record, and those behind it, are
# never read again.
set -euo pipefail

work=$(mktemp -d)
broker=
cleanup() {
  if [ -n "$broker" ]; then
    kill "$broker" 2>/dev/null || true
    wait "$broker" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap cleanup EXIT

# One broker, which is its own controller. Sets $servers.
start_kafka() {
  local ports
  cat >"$work/pom.xml" <<XML
<project><modelVersion>4.0.0</modelVersion><groupId>finding</groupId><artifactId>kafka</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>4.4.0</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency></dependencies>
</project>
XML
  mvn -q -f "$work/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/jars" >"$work/mvn.txt" 2>&1 || { cat "$work/mvn.txt"; exit 2; }
  read -r -a ports < <(python3 -c '
import socket
found = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(one.getsockname()[1] for one in found))')
  servers="127.0.0.1:${ports[0]}"
  cat >"$work/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:${ports[1]}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://$servers,CONTROLLER://127.0.0.1:${ports[1]}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$work/logs
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
PROPERTIES
  java -cp "$work/jars/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c "$work/server.properties" >"$work/format.txt" 2>&1 ||
    { cat "$work/format.txt"; exit 2; }
  java -Xmx512m -cp "$work/jars/*" kafka.Kafka "$work/server.properties" >"$work/broker.txt" 2>&1 &
  broker=$!
}

start_kafka
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check confluent-kafka==2.16.1

cat >"$work/Seek.java" <<'JAVA'
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

public class Seek {
  public static void main(String[] words) {
    Map<String, Object> config = Map.of("bootstrap.servers", words[0], "group.id", "java", "auto.offset.reset", "earliest");
    try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
      consumer.subscribe(List.of("t"));
      int count = 0;
      while (count < 10) count += consumer.poll(Duration.ofMillis(200)).count();
      consumer.seek(new TopicPartition("t", 0), 3);
    }
  }
}
JAVA
cat >"$work/look.py" <<'PYTHON'
import subprocess
import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

servers, work = sys.argv[1:]


def created(admin, name):
    """A topic of one partition; waits for the broker, which may still be starting."""
    deadline = time.monotonic() + 120
    while True:
        try:
            admin.create_topics([NewTopic(name, 1, 1)], request_timeout=10)[name].result(20)
            return
        except KafkaException as problem:
            if problem.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return
            if time.monotonic() > deadline:
                raise
            time.sleep(1)


def sought(group, **config):
    """A consumer of a new group that has read all ten records, and then sought back to the fourth."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest", "log_level": 0, **config})
    consumer.subscribe(["t"])
    count, deadline = 0, time.monotonic() + 120
    while count < 10 and time.monotonic() < deadline:
        message = consumer.poll(1)
        count += message is not None and message.error() is None
    assert count == 10, count
    consumer.seek(TopicPartition("t", 0, 3))
    return consumer


def committed(group):
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "log_level": 0})
    found = consumer.committed([TopicPartition("t", 0)], timeout=60)[0].offset
    consumer.close()
    return found


created(AdminClient({"bootstrap.servers": servers, "log_level": 0}), "t")
producer = Producer({"bootstrap.servers": servers, "log_level": 0})
for _ in range(10):
    producer.produce("t", b"x")
assert producer.flush(60) == 0
subprocess.run(["java", "-cp", f"{work}/jars/*", f"{work}/Seek.java", servers], check=True, timeout=180)
sought("python").close()
byhand = sought("by hand", **{"enable.auto.commit": False})
try:
    byhand.commit(asynchronous=False)
    error = None
except KafkaException as problem:
    error = problem.args[0].name()
byhand.close()
seen = {group: committed(group) for group in ("java", "python", "by hand")}
print(f"committed after reading 0 to 9, seek to 3 and close: {seen}; error of commit() by hand: {error}")
sys.exit(not (seen["java"] == 3 and seen["python"] == 10 and seen["by hand"] == 10 and error is None))
PYTHON
"$work/venv/bin/python" "$work/look.py" "$servers" "$work"
