#!/usr/bin/env bash
# A group's config outlives the group: a new group of the same name takes over settings that nobody gave it.
#
# One would guess: deleting a group deletes what belongs to it, as deleting a topic deletes the topic's config.
# What happens: the config (resource type GROUP) stays, and is listed. A share group of that name, made anew, reads from the beginning as
# its predecessor was told to; another new group begins at the end, as by default. Configs can be set for names that no group has.
# With: broker and Java client 4.4.0.
# Hurt: whoever deletes and makes groups in tests or deployments, and whoever lists groups to find the configs there are: ask for the config
# resources (ListConfigResources) instead.
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
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.*;

public class Look {
  static String servers;

  /** How many records a share group gets, until it has the wanted ones or the seconds are over. */
  static int read(String group, int wanted, int seconds) {
    int found = 0;
    Map<String, Object> config = Map.of("bootstrap.servers", servers, "group.id", group);
    try (var consumer = new KafkaShareConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      consumer.subscribe(List.of("t"));
      for (long end = System.currentTimeMillis() + seconds * 1_000L; found < wanted && System.currentTimeMillis() < end; )
        found += consumer.poll(Duration.ofMillis(500)).count();
    }
    return found;
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
    try (var producer = new KafkaProducer<>(Map.of("bootstrap.servers", servers), new ByteArraySerializer(), new ByteArraySerializer())) {
      for (int i = 0; i < 3; i++) producer.send(new ProducerRecord<>("t", new byte[1])).get();
    }
    var resource = new ConfigResource(ConfigResource.Type.GROUP, "g");
    var earliest = new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET);
    admin.incrementalAlterConfigs(Map.of(resource, List.of(earliest))).all().get();
    for (String value = ""; !"earliest".equals(value); Thread.sleep(500))
      value = admin.describeConfigs(List.of(resource)).all().get().get(resource).get("share.auto.offset.reset").value();
    int first = read("g", 3, 60);
    admin.deleteShareGroups(List.of("g")).all().get();
    var groups = admin.listGroups().all().get();
    var configs = admin.listConfigResources(Set.of(ConfigResource.Type.GROUP), new ListConfigResourcesOptions()).all().get();
    System.out.println("first " + first + " records; after its deletion: groups " + groups + ", configs " + configs);
    int again = read("g", 3, 60), other = read("h", 1, 15);
    System.out.println("made anew: " + again + " records, another new group: " + other);
    System.exit(first == 3 && groups.isEmpty() && configs.equals(List.of(resource)) && again == 3 && other == 0 ? 0 : 1);
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
