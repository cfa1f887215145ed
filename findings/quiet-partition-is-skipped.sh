#!/usr/bin/env bash
# A consumer of confluent-kafka for Python commits nothing for a partition that gave it no record; what comes there during a restart is skipped.
#
# One would guess: a group that has once begun at the end (auto.offset.reset=latest, the default) commits its positions, with auto commit at close
# at the latest, for each partition that it holds. Its next member goes on there, as with Java's consumer.
# What happens: for a partition that delivered no record, librdkafka commits nothing. A group reads a topic of two partitions; only partition 0
# gets records, and partition 1 has no committed offset when the consumer closes. A record is written to each partition before the next
# consumer starts. That one gets the record of partition 0; for partition 1 it begins at the end once more, behind the record. Java's
# consumer commits both positions, and gets both records.
# With: broker and Java client 4.4.0, confluent-kafka 2.16.1.
# Hurt: topics with rare keys or few records, at every restart of a consumer. An application that moves from Java to Python loses what it did
# not lose before.
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

# Both consumers print a line once they hold both partitions, and then one for each record, and end when their input ends.
cat >"$work/Consume.java" <<'JAVA'
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

public class Consume {
  public static void main(String[] words) throws Exception {
    Map<String, Object> config = Map.of("bootstrap.servers", words[0], "group.id", "java");
    try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
      consumer.subscribe(List.of("t"));
      boolean held = false;
      while (System.in.available() == 0) {
        for (var record : consumer.poll(Duration.ofMillis(200))) System.out.println(record.partition() + ":" + record.value());
        if (!held && consumer.assignment().size() == 2) {
          for (var partition : consumer.assignment()) consumer.position(partition);
          System.out.println("held");
          held = true;
        }
      }
    }
  }
}
JAVA
cat >"$work/consume.py" <<'PYTHON'
import select
import sys

from confluent_kafka import Consumer

consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "python", "log_level": 0, "enable.partition.eof": True})
consumer.subscribe(["t"])
at_end = set()
while not select.select([sys.stdin], [], [], 0)[0]:
    message = consumer.poll(0.2)
    if message is None:
        continue
    if message.error() is None:
        print(f"{message.partition()}:{message.value().decode()}", flush=True)
    elif len(at_end) < 2:
        at_end.add(message.partition())
        if len(at_end) == 2:
            print("held", flush=True)
consumer.close()
PYTHON

cat >"$work/look.py" <<'PYTHON'
import subprocess
import sys
import threading
import time

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

servers, work = sys.argv[1:]
commands = {
    "java": ["java", "-Xmx256m", "-cp", f"{work}/jars/*", f"{work}/Consume.java", servers],
    "python": [sys.executable, f"{work}/consume.py", servers],
}
admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
producer = Producer({"bootstrap.servers": servers, "log_level": 0})


def created(name):
    """A topic of two partitions; waits for the broker, which may still be starting."""
    deadline = time.monotonic() + 120
    while True:
        try:
            admin.create_topics([NewTopic(name, 2, 1)], request_timeout=10)[name].result(20)
            return
        except KafkaException as problem:
            if problem.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return
            if time.monotonic() > deadline:
                raise
            time.sleep(1)


def written(partition, value):
    producer.produce("t", value.encode(), partition=partition)
    assert producer.flush(60) == 0


def run(command, between):
    """The records that a consumer gets. Once it holds both partitions, `between` is done; it is ended ten seconds later."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(line.strip() for line in process.stdout))
    reader.start()
    deadline = time.monotonic() + 120
    while "held" not in lines and time.monotonic() < deadline:
        time.sleep(0.2)
    between()
    time.sleep(10)
    process.stdin.write("end")
    process.stdin.close()
    process.wait(120)
    reader.join()
    return sorted(line for line in lines if line != "held")


def committed(group):
    (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    return {one.partition: one.offset for one in future.result(60).topic_partitions}


created("t")
written(0, "old")
seen = {}
for name, command in commands.items():
    first = run(command, lambda: written(0, "during"))
    after = committed(name)
    written(0, "between")
    written(1, "between")
    seen[name] = first, sorted(after), run(command, lambda: None)
    print(f"{name}: got {first}; committed {after}; after the restart got {seen[name][2]}")
expected = {"java": (["0:during"], [0, 1], ["0:between", "1:between"]), "python": (["0:during"], [0], ["0:between"])}
sys.exit(seen != expected)
PYTHON
"$work/venv/bin/python" "$work/look.py" "$servers" "$work"
