#!/usr/bin/env bash
# confluent-kafka for Python describes share groups and streams groups that are at work as dead, without members and without an error.
#
# One would guess: a group of a kind that the client does not know is an error, as in Java ("is not a consumer group"); or at least its state is
# right. And the list of groups has all of the cluster.
# What happens: a share consumer and a Kafka Streams application (group.protocol=streams) are running; the broker lists both groups as
# Stable. describe_consumer_groups says DEAD, type CLASSIC, no members, as it does for a group that does not exist. list_consumer_groups
# leaves both out, also if both types that it knows are asked for. The offsets of the streams group are given; for the share group there are
# none, and no error.
# With: broker and Java clients 4.4.0, confluent-kafka 2.16.1.
# Hurt: scripts that look whether a group is dead or empty before they reset, delete or move it; and inventories in Python: whole
# applications are missing.
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
<dependencies><dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$1</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-streams</artifactId><version>$1</version></dependency></dependencies>
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
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
${2:-}
PROPERTIES
  java -cp "$directory/jars/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c "$directory/server.properties" >"$directory/format.txt" 2>&1 ||
    { cat "$directory/format.txt"; exit 2; }
  java -Xmx512m -cp "$directory/jars/*" kafka.Kafka "$directory/server.properties" >"$directory/broker.txt" 2>&1 &
  pids+=($!)
}

cat >"$work/Run.java" <<'JAVA'
import java.time.Duration;
import java.util.*;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;

/** Runs a share consumer and a Streams application until its input ends. */
public class Run {
  static Map<String, String> states(Admin admin) throws Exception {
    var states = new TreeMap<String, String>();
    for (var group : admin.listGroups().all().get()) states.put(group.groupId(), group.groupState().map(Object::toString).orElse("?"));
    return states;
  }

  public static void main(String[] words) throws Exception {
    String servers = words[0];
    var admin = Admin.create(Map.of("bootstrap.servers", servers));
    for (int tries = 0; ; tries++) {
      try {
        admin.createTopics(List.of(new NewTopic("t", 1, (short) 1))).all().get();
        break;
      } catch (ExecutionException problem) {
        if (problem.getCause() instanceof TopicExistsException) break;
        if (tries == 60) throw problem;
        Thread.sleep(1_000);
      }
    }
    var builder = new StreamsBuilder();
    builder.stream("t").foreach((key, value) -> {});
    var config = new Properties();
    config.putAll(Map.of("bootstrap.servers", servers, "application.id", "streams", "group.protocol", "streams", "state.dir", words[1],
        "auto.offset.reset", "earliest", "commit.interval.ms", 500));
    config.put("default.key.serde", Serdes.ByteArraySerde.class);
    config.put("default.value.serde", Serdes.ByteArraySerde.class);
    var streams = new KafkaStreams(builder.build(), config);
    streams.start();
    var sharing = new Thread(() -> {
      Map<String, Object> reading = Map.of("bootstrap.servers", servers, "group.id", "share");
      try (var consumer = new KafkaShareConsumer<>(reading, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
        consumer.subscribe(List.of("t"));
        while (true) consumer.poll(Duration.ofMillis(500));
      }
    });
    sharing.setDaemon(true);
    sharing.start();
    var expected = Map.of("share", "Stable", "streams", "Stable");
    for (int tries = 0; tries < 60 && !states(admin).equals(expected); tries++) Thread.sleep(1_000);
    try (var producer = new KafkaProducer<>(Map.of("bootstrap.servers", servers), new ByteArraySerializer(), new ByteArraySerializer())) {
      for (int i = 0; i < 5; i++) producer.send(new ProducerRecord<>("t", new byte[1])).get();
    }
    for (int tries = 0; tries < 60 && admin.listConsumerGroupOffsets("streams").partitionsToOffsetAndMetadata().get().isEmpty(); tries++) Thread.sleep(1_000);
    for (var group : List.of("share", "streams")) {
      try {
        System.out.println("Java: " + admin.describeConsumerGroups(List.of(group)).all().get());
      } catch (ExecutionException problem) {
        System.out.println("Java: " + problem.getCause().getMessage());
      }
    }
    System.out.println("ready: " + states(admin));
    System.in.read();
    System.out.println("end: " + states(admin));
    System.exit(states(admin).equals(expected) ? 0 : 1);
  }
}
JAVA

cat >"$work/look.py" <<'PYTHON'
import subprocess
import sys

from confluent_kafka import ConsumerGroupTopicPartitions, ConsumerGroupType
from confluent_kafka.admin import AdminClient

servers, work = sys.argv[1:]
command = ["java", "-Xmx256m", "-cp", f"{work}/kafka-4.4.0/jars/*", f"{work}/Run.java", servers, f"{work}/state"]
seen, refused = {}, []
with open(f"{work}/run.txt", "w") as log, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as run:
    for line in run.stdout:
        print(line, end="")
        refused += ["is not a consumer group" in line] if line.startswith("Java") else []
        if line.startswith("ready"):
            break
    admin = AdminClient({"bootstrap.servers": servers})
    listed = [group.group_id for group in admin.list_consumer_groups().result().valid]
    types = {ConsumerGroupType.CLASSIC, ConsumerGroupType.CONSUMER}
    listed += [group.group_id for group in admin.list_consumer_groups(types=types).result().valid]
    for name in ("share", "streams", "nobody"):
        group = admin.describe_consumer_groups([name])[name].result()
        offsets = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name].result().topic_partitions
        seen[name] = group.state.name, group.type.name, len(group.members), len(offsets)
    print(f"Python lists {listed}, and describes (state, type, members, partitions with offsets): {seen}")
    print(run.communicate("\n")[0], end="")
expected = {"share": ("DEAD", "CLASSIC", 0, 0), "streams": ("DEAD", "CLASSIC", 0, 1), "nobody": ("DEAD", "CLASSIC", 0, 0)}
sys.exit(not (run.returncode == 0 and listed == [] and seen == expected and refused == [True, True]))
PYTHON
python3.11 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check confluent-kafka==2.16.1
start_kafka 4.4.0
"$work/venv/bin/python" "$work/look.py" "$servers" "$work" || { grep -v SLF4J "$work/run.txt" | tail -n 20; exit 1; }
