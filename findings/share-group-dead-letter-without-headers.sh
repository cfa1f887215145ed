#!/usr/bin/env bash
# A share group's dead letter, with "copy the record" on, has the record's key and value, but none of its headers, and not its time.
#
# One would guess: errors.deadletterqueue.copy.record.enable=true copies the original record, as its description says: key, value and headers;
# the broker adds its own ones.
# What happens: the copy has key and value. Its headers are the six of the broker (topic, partition, offset, group, number of deliveries, message).
# The header that the record came with is gone, and its timestamp is that of the copy.
# With: broker and Java client 4.4.0.
# Hurt: whoever keeps the schema's id, the event's type, an encryption key's name or a trace in headers: the dead letter cannot be read any
# more, or not be put back. The rest must be fetched by the offset, which is one of this cluster, while the record is still there.
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
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.serialization.*;

public class Look {
  static Admin admin;

  static void create(NewTopic... topics) throws Exception {
    for (var topic : topics)
      for (int tries = 0; ; tries++) {
        try {
          admin.createTopics(List.of(topic)).all().get();
          break;
        } catch (ExecutionException problem) {
          if (problem.getCause() instanceof TopicExistsException) break;
          if (tries == 60) throw problem;
          Thread.sleep(1_000);
        }
      }
  }


  static void set(ConfigResource.Type type, String name, String key, String value) throws Exception {
    var change = new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET);
    admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, name), List.of(change))).all().get();
  }

  public static void main(String[] words) throws Exception {
    admin = Admin.create(Map.of("bootstrap.servers", words[0]));
    create(new NewTopic("orders", 1, (short) 1));
    create(new NewTopic("dlq.orders", 1, (short) 1).configs(Map.of("errors.deadletterqueue.group.enable", "true")));
    set(ConfigResource.Type.GROUP, "g", "share.auto.offset.reset", "earliest");
    set(ConfigResource.Type.GROUP, "g", "errors.deadletterqueue.topic.name", "dlq.orders");
    set(ConfigResource.Type.GROUP, "g", "errors.deadletterqueue.copy.record.enable", "true");
    long time = System.currentTimeMillis() - 60_000;
    try (var producer = new KafkaProducer<>(Map.of("bootstrap.servers", words[0]), new StringSerializer(), new StringSerializer())) {
      var order = new ProducerRecord<>("orders", 0, time, "key", "value");
      order.headers().add("type", "OrderPlaced".getBytes());
      producer.send(order).get();
    }
    var reading = new TreeMap<String, Object>(Map.of("bootstrap.servers", words[0], "group.id", "g", "share.acknowledgement.mode", "explicit"));
    ConsumerRecord<String, String> source = null;
    try (var consumer = new KafkaShareConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
      consumer.subscribe(List.of("orders"));
      for (long end = System.currentTimeMillis() + 60_000; source == null && System.currentTimeMillis() < end; )
        for (var record : consumer.poll(Duration.ofMillis(500))) {
          source = record;
          consumer.acknowledge(record, AcknowledgeType.REJECT);
        }
      consumer.commitSync();
    }
    ConsumerRecord<String, String> letter = null;
    try (var consumer = new KafkaConsumer<>(Map.<String, Object>of("bootstrap.servers", words[0]), new StringDeserializer(), new StringDeserializer())) {
      var partition = new TopicPartition("dlq.orders", 0);
      consumer.assign(List.of(partition));
      consumer.seekToBeginning(List.of(partition));
      for (long end = System.currentTimeMillis() + 60_000; letter == null && System.currentTimeMillis() < end; )
        for (var record : consumer.poll(Duration.ofMillis(500))) letter = record;
    }
    var headers = new ArrayList<String>();
    for (var header : letter.headers()) headers.add(header.key());
    System.out.println("read: " + source);
    System.out.println("dead letter: " + letter);
    boolean same = letter.key().equals("key") && letter.value().equals("value");
    boolean told = source.headers().lastHeader("type") != null && source.timestamp() == time && headers.size() == 6;
    System.exit(same && told && headers.stream().allMatch(name -> name.startsWith("__dlq.errors.")) && letter.timestamp() > time ? 0 : 1);
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
