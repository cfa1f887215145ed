#!/usr/bin/env bash
# commitTransaction() returns before the transaction can be read: the committed end, asked for right then, is often still the old one.
#
# One would guess: a commit that returned is visible, to readers with read_committed and in a group's offsets. At the least all partitions
# of a transaction become visible at once.
# What happens: the call returns once the coordinator has stored the decision; the markers are written after that. Of 200 commits to ten
# partitions, right after each the committed ends are asked for: for many of them the record is still missing, for some in a part
# of the partitions only. DescribeTransactions says PrepareCommit then. A group's offset, asked for by an admin client, is at times still
# the old one too. How often depends on the machine; the script wants to see each at least once.
# With: brokers and Java clients 3.9.1 and 4.4.0.
# Hurt: tests that write, commit and read to the end; and whoever stops the writers at a cut-over, takes the ends, and copies up to them:
# the last transactions are missing. Wait until no transaction is in PrepareCommit before.
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
group.initial.rebalance.delay.ms=0
${2:-}
PROPERTIES
  java -cp "$directory/jars/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c "$directory/server.properties" >"$directory/format.txt" 2>&1 ||
    { cat "$directory/format.txt"; exit 2; }
  java -Xmx512m -cp "$directory/jars/*" kafka.Kafka "$directory/server.properties" >"$directory/broker.txt" 2>&1 &
  pids+=($!)
}

cat >"$work/Look.java" <<'JAVA'
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
  static final int PARTITIONS = 10;
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


  public static void main(String[] words) throws Exception {
    admin = Admin.create(Map.of("bootstrap.servers", words[0]));
    create("t");
    Map<String, Object> config = Map.of("bootstrap.servers", words[0], "transactional.id", "orders");
    var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    producer.initTransactions();
    var ends = new HashMap<TopicPartition, OffsetSpec>();
    for (int i = 0; i < PARTITIONS; i++) ends.put(new TopicPartition("t", i), OffsetSpec.latest());
    var committed = new ListOffsetsOptions(IsolationLevel.READ_COMMITTED);
    var first = new TopicPartition("t", 0);
    int missing = 0, mixed = 0, preparing = 0, old = 0, rounds = 200;
    // Each transaction makes a partition longer by a record and a marker. Ends are asked for after the odd ones, offsets after the even ones.
    for (long number = 1; number <= 2 * rounds; number++) {
      producer.beginTransaction();
      for (var partition : ends.keySet()) producer.send(new ProducerRecord<>("t", partition.partition(), null, "x"));
      producer.sendOffsetsToTransaction(Map.of(first, new OffsetAndMetadata(number)), new ConsumerGroupMetadata("g"));
      producer.commitTransaction();
      if (number % 2 == 1) {
        long end = 2 * number;
        long behind = admin.listOffsets(ends, committed).all().get().values().stream().filter(seen -> seen.offset() < end).count();
        if (behind > 0) missing++;
        if (behind > 0 && behind < PARTITIONS) mixed++;
        if (admin.describeTransactions(List.of("orders")).all().get().get("orders").state() == TransactionState.PREPARE_COMMIT) preparing++;
      } else {
        var offset = admin.listConsumerGroupOffsets("g").partitionsToOffsetAndMetadata().get().get(first);
        if (offset == null || offset.offset() < number) old++;
      }
      Thread.sleep(20);
    }
    System.out.println(words[1] + ": right after " + rounds + " commits the record is missing " + missing + " times, in a part of the partitions "
        + mixed + " times, in PrepareCommit " + preparing + " times; after " + rounds + " others the group's offset is old " + old + " times");
    System.exit(missing > 0 && mixed > 0 && preparing > 0 && old > 0 ? 0 : 1);
  }
}
JAVA

answer=0
for release in 3.9.1 4.4.0; do
  start_kafka "$release"
  java -cp "$work/kafka-$release/jars/*" "$work/Look.java" "$servers" "$release" 2>"$work/java.txt" || { answer=1; grep -v SLF4J "$work/java.txt" || true; }
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
done
exit "$answer"
