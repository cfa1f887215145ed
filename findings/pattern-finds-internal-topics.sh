#!/usr/bin/env bash
# Who subscribes to all topics by a pattern reads __consumer_offsets too: always in Python, and in Java once the broker looks for the topics.
#
# One would guess: internal topics are left out of patterns, as Java's setting exclude.internal.topics says, which is true by default; only who
# names them gets them. Which protocol the group uses makes no difference.
# What happens: Java's consumer with java.util.regex.Pattern leaves it out. With SubscriptionPattern, which KIP-848 made for the consumer protocol,
# the same "^.*" gets it, with the same setting. confluent-kafka gets it with both protocols.
# With: broker and Java client 4.4.0, confluent-kafka 2.16.1.
# Hurt: whoever copies or archives "all topics": binary records that nobody has written knowingly, and each commit of such a consumer
# is a new record for it.
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

cat >"$work/Find.java" <<'JAVA'
import java.time.Duration;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

// The topics that a consumer of a new group is assigned, once that has not changed for five seconds.
public class Find {
  public static void main(String[] words) {
    Map<String, Object> config = Map.of("bootstrap.servers", words[0], "group.id", words[1], "group.protocol", "consumer", "enable.auto.commit", false);
    try (var consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      if (words[1].equals("SubscriptionPattern")) consumer.subscribe(new SubscriptionPattern("^.*"));
      else consumer.subscribe(Pattern.compile("^.*"));
      var topics = new TreeSet<String>();
      long since = System.currentTimeMillis(), deadline = since + 90_000;
      while (System.currentTimeMillis() < deadline && (topics.isEmpty() || System.currentTimeMillis() < since + 5_000)) {
        consumer.poll(Duration.ofMillis(500));
        var now = new TreeSet<String>();
        for (var partition : consumer.assignment()) now.add(partition.topic());
        if (!now.equals(topics)) since = System.currentTimeMillis();
        topics = now;
      }
      System.out.println(String.join(" ", topics));
    }
  }
}
JAVA
cat >"$work/look.py" <<'PYTHON'
import subprocess
import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException
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


def found(pattern, protocol):
    """The topics that a consumer of a new group is assigned, once that has not changed for five seconds."""
    group = f"{protocol} {pattern}"
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "group.protocol": protocol, "log_level": 0})
    consumer.subscribe([pattern])
    topics, since, deadline = [], time.monotonic(), time.monotonic() + 90
    while time.monotonic() < deadline and not (topics and time.monotonic() > since + 5):
        consumer.poll(0.5)
        now = sorted(one.topic for one in consumer.assignment())
        if now != topics:
            topics, since = now, time.monotonic()
    consumer.close()
    return topics


def found_by_java(kind):
    command = ["java", "-cp", f"{work}/jars/*", f"{work}/Find.java", servers, kind]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=180).stdout.split()


admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
created(admin, "orders")
# The topic of offsets is there with the first group.
assert "orders" in found("^orders", "classic")
seen = {f"Python, {protocol}": found("^.*", protocol) for protocol in ("classic", "consumer")}
seen |= {f"Java, {kind}": found_by_java(kind) for kind in ("Pattern", "SubscriptionPattern")}
for what, topics in seen.items():
    print(f"{what}: {topics}")
both = ["__consumer_offsets", "orders"]
sys.exit(seen != {"Python, classic": both, "Python, consumer": both, "Java, Pattern": ["orders"], "Java, SubscriptionPattern": both})
PYTHON
"$work/venv/bin/python" "$work/look.py" "$servers" "$work"
