#!/usr/bin/env bash
# A share group that has acknowledged every record is listed with lag 0, and with the start offset of its last acknowledgement, not with the end.
#
# One would guess: the start offset is that of the first record which is not done. If all are done, it is the end of the partition, as lag 0 says.
# What happens: of ten records, read in one poll and acknowledged in one commit, the list says start 0 and lag 0. Acknowledged one by one it
# says 9 and 0. It stays so when the consumer is closed, and when another one of the group waits for ten seconds, and gets nothing. A second
# group that is set to the listed start gets all ten once more.
# With: broker and Java client 4.4.0.
# Hurt: whoever moves share groups by their start offsets: as much is delivered twice as was acknowledged at once. Where the lag is 0,
# take the end.
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
  static final TopicPartition PARTITION = new TopicPartition("t", 0);
  static String servers;
  static Admin admin;

  /** The offsets that the group gets until it has the wanted number or the seconds are over, acknowledged one by one or all of a poll at once. */
  static List<Long> shared(String group, boolean single, int wanted, int seconds) {
    var found = new ArrayList<Long>();
    Map<String, Object> config = Map.of("bootstrap.servers", servers, "group.id", group, "share.acknowledgement.mode", "explicit");
    try (var consumer = new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
      consumer.subscribe(List.of("t"));
      for (long end = System.currentTimeMillis() + seconds * 1_000L; found.size() < wanted && System.currentTimeMillis() < end; ) {
        for (var record : consumer.poll(Duration.ofMillis(500))) {
          found.add(record.offset());
          consumer.acknowledge(record);
          if (single) consumer.commitSync();
        }
        consumer.commitSync();
      }
    }
    return found;
  }

  static SharePartitionOffsetInfo listed(String group) throws Exception {
    return admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec())).all().get().get(group).get(PARTITION);
  }

  static boolean is(SharePartitionOffsetInfo info, long start) {
    return info.startOffset() == start && info.lag().equals(Optional.of(0L));
  }

  public static void main(String[] words) throws Exception {
    servers = words[0];
    admin = Admin.create(Map.of("bootstrap.servers", servers));
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
    // One batch, so that one poll gets all.
    Map<String, Object> config = Map.of("bootstrap.servers", servers, "linger.ms", 1_000);
    try (var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
      for (int i = 0; i < 10; i++) producer.send(new ProducerRecord<>("t", "x"));
    }
    for (var group : List.of("at-once", "one-by-one")) admin.alterShareGroupOffsets(group, Map.of(PARTITION, 0L)).all().get();
    var first = shared("at-once", false, 10, 60);
    var second = shared("one-by-one", true, 10, 60);
    var atOnce = listed("at-once");
    var oneByOne = listed("one-by-one");
    var idle = shared("at-once", false, 1, 10);
    var later = listed("at-once");
    admin.alterShareGroupOffsets("copy", Map.of(PARTITION, later.startOffset())).all().get();
    var again = shared("copy", false, 10, 60);
    System.out.println("acknowledged at once: " + first + ", listed " + atOnce + ", one by one: " + second + ", listed " + oneByOne);
    System.out.println("the first group again: " + idle + ", listed " + later + "; a group that is set to its start gets " + again);
    boolean told = first.size() == 10 && second.size() == 10 && is(atOnce, 0) && is(oneByOne, 9) && idle.isEmpty() && is(later, 0);
    System.exit(told && again.equals(first) ? 0 : 1);
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
