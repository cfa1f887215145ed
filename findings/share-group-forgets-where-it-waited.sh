#!/usr/bin/env bash
# A share group that waited at the end of a topic and was stopped does not get what comes meanwhile: its place is kept only once it had a record.
#
# One would guess: a group that has begun has a place. The broker keeps it, unlike the client's commits of a consumer group, and
# share.auto.offset.reset, latest by default, counts for the very first time only.
# What happens: a share consumer waits 15 seconds on a topic with three records, and is closed. Five records are written. The next consumer of
# the group gets none of them, and those that come while it is there. The list of offsets has no offset for the partition before. After
# this first record the place is kept: what comes during the next stop is delivered.
# With: broker and Java client 4.4.0.
# Hurt: whoever starts a new share group before a topic has traffic, and restarts or deploys it: records are skipped, in each partition
# that has been quiet so far. Set the group's offsets, or share.auto.offset.reset=earliest, before.
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

cat >"$work/Look.java" <<'JAVA'
import java.time.Duration;
import java.util.*;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.*;

public class Look {
  static final int PARTITIONS = 1;
  static String servers;
  static Admin admin;

  static void create(String... topics) throws Exception {
    for (var topic : topics)
      for (int tries = 0; ; tries++) {
        try {
          admin.createTopics(List.of(new NewTopic(topic, PARTITIONS, (short) 1))).all().get();
          break;
        } catch (ExecutionException problem) {
          if (problem.getCause() instanceof TopicExistsException) break;
          if (tries == 60) throw problem;
          Thread.sleep(1_000);
        }
      }
  }


  static void write(int partition, int count) throws Exception {
    try (var producer = new KafkaProducer<>(Map.of("bootstrap.servers", servers), new StringSerializer(), new StringSerializer())) {
      for (int i = 0; i < count; i++) producer.send(new ProducerRecord<>("t", partition, null, "x")).get();
    }
  }


  /** What the group gets within 20 seconds, while `count` records are written after 15. */
  static List<Long> shared(int count) throws Exception {
    var found = new ArrayList<Long>();
    Map<String, Object> config = Map.of("bootstrap.servers", servers, "group.id", "g");
    try (var consumer = new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
      consumer.subscribe(List.of("t"));
      long begin = System.currentTimeMillis();
      for (boolean written = false; System.currentTimeMillis() < begin + 20_000; ) {
        for (var record : consumer.poll(Duration.ofMillis(500))) found.add(record.offset());
        if (!written && System.currentTimeMillis() > begin + 15_000) {
          write(0, count);
          written = true;
        }
      }
    }
    return found;
  }

  static Object listed() throws Exception {
    return admin.listShareGroupOffsets(Map.of("g", new ListShareGroupOffsetsSpec())).all().get().get("g").get(new TopicPartition("t", 0));
  }

  public static void main(String[] words) throws Exception {
    servers = words[0];
    admin = Admin.create(Map.of("bootstrap.servers", servers));
    create("t");
    write(0, 3);
    var first = shared(0);
    var before = listed();
    write(0, 5);
    var second = shared(1);
    var after = listed();
    write(0, 5);
    var third = shared(0);
    System.out.println("records 0 to 2, the group waits: " + first + ", listed " + before + "; 3 to 7 while it is stopped, 8 while it runs: " + second
        + ", listed " + after + "; 9 to 13 while it is stopped: " + third);
    System.exit(first.isEmpty() && before == null && second.equals(List.of(8L)) && after != null && third.equals(List.of(9L, 10L, 11L, 12L, 13L)) ? 0 : 1);
  }
}
JAVA

answer=0
for release in 4.4.0; do
  start_kafka "$release"
  java -cp "$work/kafka-$release/jars/*" "$work/Look.java" "$servers" "$release" 2>"$work/java.txt" || { answer=1; grep -v SLF4J "$work/java.txt" || true; }
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
done
exit "$answer"
