#!/usr/bin/env bash
# Who may describe a group, but not all its topics, sees a classic group whole, topic names too, and of a group of the new protocol nothing.
#
# One would guess: the topics that one may not see are left out, as in the group's committed offsets.
# What happens: the right Describe on the group is enough for a classic group: members and all their partitions are shown, also of the topic
# without a right. For the same consumer with group.protocol=consumer (KIP-848), the same call with the same rights fails with
# TopicAuthorizationException, and shows neither members nor the permitted topic. The committed offsets come without that topic in both
# cases.
# With: broker and Java client 4.4.0.
# Hurt: monitoring whose user has rights on groups and some topics: it works until an application changes its protocol.
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

# One broker of a release, which is its own controller. Sets $servers and $users; $2: more lines for its properties.
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
found = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
print(*(one.getsockname()[1] for one in found))')
  servers="127.0.0.1:${ports[0]}"
  users="127.0.0.1:${ports[2]}"
  cat >"$directory/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:${ports[1]}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://$servers,USERS://$users,CONTROLLER://127.0.0.1:${ports[1]}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,USERS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$directory/logs
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
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
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.serialization.*;

public class Look {
  static AclBinding describe(ResourceType type, String name) {
    var entry = new AccessControlEntry("User:watcher", "*", AclOperation.DESCRIBE, AclPermissionType.ALLOW);
    return new AclBinding(new ResourcePattern(type, name, PatternType.LITERAL), entry);
  }

  /** What the watcher sees of a group: the topics of its members and of its offsets. */
  static String seen(Admin watcher, String group) throws Exception {
    String members;
    try {
      var topics = new TreeSet<String>();
      for (var member : watcher.describeConsumerGroups(List.of(group)).all().get().get(group).members())
        for (var partition : member.assignment().topicPartitions()) topics.add(partition.topic());
      members = topics.toString();
    } catch (ExecutionException problem) {
      members = problem.getCause().getClass().getSimpleName();
    }
    var offsets = new TreeSet<String>();
    for (var partition : watcher.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().keySet()) offsets.add(partition.topic());
    return members + " " + offsets;
  }

  public static void main(String[] words) throws Exception {
    var everybody = Map.<String, Object>of("bootstrap.servers", words[0]);
    var admin = Admin.create(everybody);
    for (int tries = 0; ; tries++) {
      try {
        admin.createTopics(List.of(new NewTopic("mine", 1, (short) 1), new NewTopic("theirs", 1, (short) 1))).all().get();
        break;
      } catch (ExecutionException problem) {
        if (problem.getCause() instanceof TopicExistsException) break;
        if (tries == 60) throw problem;
        Thread.sleep(1_000);
      }
    }
    try (var producer = new KafkaProducer<>(everybody, new ByteArraySerializer(), new ByteArraySerializer())) {
      for (var topic : List.of("mine", "theirs")) producer.send(new ProducerRecord<>(topic, new byte[1])).get();
    }
    var login = "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"watcher\" password=\"w\";";
    var watcher = Admin.create(Map.of("bootstrap.servers", words[2], "security.protocol", "SASL_PLAINTEXT", "sasl.mechanism", "PLAIN", "sasl.jaas.config", login));
    var rights = List.of(describe(ResourceType.GROUP, "classic"), describe(ResourceType.GROUP, "consumer"), describe(ResourceType.TOPIC, "mine"));
    admin.createAcls(rights).all().get();
    Thread.sleep(1_000);
    var found = new ArrayList<String>();
    for (var protocol : List.of("classic", "consumer")) {
      var config = new HashMap<>(everybody);
      config.putAll(Map.of("group.id", protocol, "group.protocol", protocol, "auto.offset.reset", "earliest"));
      try (var consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
        consumer.subscribe(List.of("mine", "theirs"));
        int records = 0;
        for (int i = 0; i < 120 && records < 2; i++) records += consumer.poll(Duration.ofMillis(500)).count();
        consumer.commitSync();
        found.add(seen(watcher, protocol));
      }
      System.out.println("group.protocol=" + protocol + ": topics of members, and of offsets: " + found.get(found.size() - 1));
    }
    System.exit(found.equals(List.of("[mine, theirs] [mine]", "TopicAuthorizationException [mine]")) ? 0 : 1);
  }
}
JAVA

answer=0
for release in 4.4.0; do
  start_kafka "$release" "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
sasl.enabled.mechanisms=PLAIN
listener.name.users.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_watcher=\"w\";"
  java -cp "$work/kafka-$release/jars/*" "$work/Look.java" "$servers" "$release" "$users" 2>"$work/java.txt" || { answer=1; grep -v SLF4J "$work/java.txt" || true; }
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
done
exit "$answer"
