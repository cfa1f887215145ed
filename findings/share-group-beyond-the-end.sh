#!/usr/bin/env bash
# A share group whose offset was set beyond a partition's end gets none of the records that are written until then.
#
# One would guess: the request is refused, as for a partition that does not exist; or the group begins where share.auto.offset.reset says,
# as a consumer group does whose position is out of range.
# What happens: the offset is stored, the lag is unknown, and the group waits. Of ten records and, later, ten more, a group that was set to
# 15 gets those from 15 on; offsets 10 to 14 were written after it was set, and are skipped. A consumer group that was set to 15 resets, and
# gets offsets 0 to 9 with "earliest".
# With: broker and Java client 4.4.0.
# Hurt: whoever sets share groups to numbers of another cluster, or to numbers from before a topic was made anew: nothing comes, and nothing
# complains. Compare with the end offsets first.
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
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.*;

public class Look {
  static String servers;

  static void write(int count) throws Exception {
    try (var producer = new KafkaProducer<>(Map.of("bootstrap.servers", servers), new ByteArraySerializer(), new ByteArraySerializer())) {
      for (int i = 0; i < count; i++) producer.send(new ProducerRecord<>("t", new byte[1])).get();
    }
  }

  /** The offsets that the group gets, until it has the wanted number or the seconds are over. */
  static List<Long> shared(int wanted, int seconds) {
    var found = new ArrayList<Long>();
    Map<String, Object> config = Map.of("bootstrap.servers", servers, "group.id", "shared");
    try (var consumer = new KafkaShareConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      consumer.subscribe(List.of("t"));
      for (long end = System.currentTimeMillis() + seconds * 1_000L; found.size() < wanted && System.currentTimeMillis() < end; )
        for (var record : consumer.poll(Duration.ofMillis(500))) found.add(record.offset());
    }
    return found;
  }

  static List<Long> consumed() {
    var found = new ArrayList<Long>();
    Map<String, Object> config = Map.of("bootstrap.servers", servers, "group.id", "consumed", "auto.offset.reset", "earliest");
    try (var consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      consumer.subscribe(List.of("t"));
      for (long end = System.currentTimeMillis() + 60_000; found.size() < 10 && System.currentTimeMillis() < end; )
        for (var record : consumer.poll(Duration.ofMillis(500))) found.add(record.offset());
    }
    return found;
  }

  static List<Long> range(long from, long to) {
    return java.util.stream.LongStream.range(from, to).boxed().toList();
  }

  public static void main(String[] words) throws Exception {
    servers = words[0];
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
    write(10);
    var partition = new TopicPartition("t", 0);
    admin.alterShareGroupOffsets("shared", Map.of(partition, 15L)).all().get();
    admin.alterConsumerGroupOffsets("consumed", Map.of(partition, new OffsetAndMetadata(15))).all().get();
    var before = shared(1, 15);
    var listed = admin.listShareGroupOffsets(Map.of("shared", new ListShareGroupOffsetsSpec())).all().get().get("shared").get(partition);
    var plain = consumed();
    System.out.println("set to 15, 10 records: the share group gets " + before + " and is listed with " + listed + ", the consumer group gets " + plain);
    write(10);
    var after = shared(5, 60);
    System.out.println("10 more records: the share group gets " + after);
    boolean told = before.isEmpty() && listed.startOffset() == 15 && listed.lag().isEmpty() && plain.equals(range(0, 10)) && after.equals(range(15, 20));
    System.exit(told ? 0 : 1);
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
