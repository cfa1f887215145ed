#!/usr/bin/env bash
# Admin.alterStreamsGroupOffsets for a group that is not there makes a classic group, which the other calls for streams groups do not know.
#
# One would guess: the call is refused, or makes a streams group, as alterShareGroupOffsets makes a share group. What listStreamsGroupOffsets
# shows, describeStreamsGroups shows too.
# What happens: it succeeds, and the group is listed with type Classic. listStreamsGroupOffsets gives the offset, the list of streams groups
# is empty, and describeStreamsGroups says that it is not a streams group. A plain consumer with this group.id joins, and goes on from the
# offset. deleteStreamsGroups deletes it all the same.
# With: broker and Java client 4.4.0.
# Hurt: whoever sets the positions of Streams applications before they start on a new cluster, and then compares the groups by their kinds: they
# are missing on one side, and surplus on the other. Compare offsets by name until the application has run.
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
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.serialization.*;

public class Look {
  static Admin admin;

  static Map<String, String> kinds() throws Exception {
    var kinds = new TreeMap<String, String>();
    for (var group : admin.listGroups().all().get()) kinds.put(group.groupId(), group.type().map(Object::toString).orElse("?"));
    return kinds;
  }

  public static void main(String[] words) throws Exception {
    admin = Admin.create(Map.of("bootstrap.servers", words[0]));
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
    try (var producer = new KafkaProducer<>(Map.of("bootstrap.servers", words[0]), new StringSerializer(), new StringSerializer())) {
      for (int i = 0; i < 5; i++) producer.send(new ProducerRecord<>("t", "x")).get();
    }
    var partition = new TopicPartition("t", 0);
    admin.alterStreamsGroupOffsets("app", Map.of(partition, new OffsetAndMetadata(3))).all().get();
    admin.alterShareGroupOffsets("share", Map.of(partition, 3L)).all().get();
    var kinds = kinds();
    var streams = admin.listGroups(ListGroupsOptions.forStreamsGroups()).all().get();
    var offset = admin.listStreamsGroupOffsets(Map.of("app", new ListStreamsGroupOffsetsSpec())).all().get().get("app").get(partition);
    String described;
    try {
      described = admin.describeStreamsGroups(List.of("app")).all().get().toString();
    } catch (ExecutionException problem) {
      described = problem.getCause().getMessage();
    }
    var got = new ArrayList<Long>();
    Map<String, Object> config = Map.of("bootstrap.servers", words[0], "group.id", "app");
    try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
      consumer.subscribe(List.of("t"));
      for (long end = System.currentTimeMillis() + 30_000; got.size() < 2 && System.currentTimeMillis() < end; )
        for (var record : consumer.poll(Duration.ofMillis(500))) got.add(record.offset());
    }
    admin.deleteStreamsGroups(List.of("app")).all().get();
    var left = kinds();
    System.out.println("set: " + kinds + "; streams groups: " + streams + "; offset: " + offset.offset() + "; described: " + described);
    System.out.println("a plain consumer gets " + got + "; after deleteStreamsGroups: " + left);
    boolean told = kinds.equals(Map.of("app", "Classic", "share", "Share")) && streams.isEmpty() && offset.offset() == 3;
    told &= described.contains("is not a streams group") && got.equals(List.of(3L, 4L)) && left.equals(Map.of("share", "Share"));
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
