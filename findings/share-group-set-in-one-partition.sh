#!/usr/bin/env bash
# Who sets the offset of a share group in one partition makes it begin at the start of all others of the topic, whatever its reset says.
#
# One would guess: the other partitions begin where share.auto.offset.reset says, at the end by default, as they do in a group that nobody
# set; and as in consumer groups, where partitions without an offset go by auto.offset.reset.
# What happens: two partitions hold four records each. A share group that nobody set gets none of them. One that was set to the end of
# partition 0 gets the four of partition 1. A consumer group with the same offset, and auto.offset.reset=latest, gets none.
# With: broker and Java client 4.4.0.
# Hurt: whoever moves share groups and leaves out partitions which the source has no offset for, or skips bad records in
# one partition: the whole rest of the topic comes again. Set all partitions in one call.
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
  static final int PARTITIONS = 2;
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


  /** What the group gets within 15 seconds. */
  static List<String> shared(String group) {
    var found = new ArrayList<String>();
    Map<String, Object> config = Map.of("bootstrap.servers", servers, "group.id", group);
    try (var consumer = new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
      consumer.subscribe(List.of("t"));
      for (long end = System.currentTimeMillis() + 15_000; System.currentTimeMillis() < end; )
        for (var record : consumer.poll(Duration.ofMillis(500))) found.add(record.partition() + ":" + record.offset());
    }
    return found;
  }

  static List<String> consumed(String group) {
    var found = new ArrayList<String>();
    Map<String, Object> config = Map.of("bootstrap.servers", servers, "group.id", group, "auto.offset.reset", "latest");
    try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
      consumer.subscribe(List.of("t"));
      for (long end = System.currentTimeMillis() + 15_000; System.currentTimeMillis() < end; )
        for (var record : consumer.poll(Duration.ofMillis(500))) found.add(record.partition() + ":" + record.offset());
    }
    return found;
  }

  public static void main(String[] words) throws Exception {
    servers = words[0];
    admin = Admin.create(Map.of("bootstrap.servers", servers));
    create("t");
    for (int partition : List.of(0, 1)) write(partition, 4);
    var first = new TopicPartition("t", 0);
    var reset = new ConfigResource(ConfigResource.Type.GROUP, "set");
    var policy = admin.describeConfigs(List.of(reset)).all().get().get(reset).get("share.auto.offset.reset").value();
    var plain = shared("new");
    admin.alterShareGroupOffsets("set", Map.of(first, 4L)).all().get();
    var set = shared("set");
    admin.alterConsumerGroupOffsets("consumer", Map.of(first, new OffsetAndMetadata(4))).all().get();
    var consumer = consumed("consumer");
    System.out.println("share.auto.offset.reset=" + policy + ": a new share group gets " + plain + ", one that was set in partition 0 " + set
        + ", the consumer group " + consumer);
    System.exit(policy.equals("latest") && plain.isEmpty() && set.equals(List.of("1:0", "1:1", "1:2", "1:3")) && consumer.isEmpty() ? 0 : 1);
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
