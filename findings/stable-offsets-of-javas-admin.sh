#!/usr/bin/env bash
# Java's Admin, asked for a group's offsets with requireStable(true) while a transaction is about to change them, answers that there are none.
#
# One would guess: it waits until the transaction has ended, as a consumer does that asks for its own offsets (KIP-447); or it gives what was
# committed before, as without requireStable; or it fails.
# What happens: the call succeeds at once, and the partition has no offset (null by name, missing in the whole list), as if the group had
# never committed. The broker's error UNSTABLE_OFFSET_COMMIT only becomes a warning in the log. Without requireStable the same call gives 3.
# With: brokers and Java clients 3.9.1 and 4.4.0.
# Hurt: whoever uses the safer option before copying or resetting positions: a group in the middle of a transaction looks new, and gets a
# position that it did not have.
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
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringSerializer;

public class Look {
    static final TopicPartition KEY = new TopicPartition("t", 0);
    static Admin admin;

    /** What the group has committed for the partition. `partitions`: what is asked for; null: all. */
    static String committed(List<TopicPartition> partitions, boolean stable) throws Exception {
        ListConsumerGroupOffsetsOptions options = new ListConsumerGroupOffsetsOptions().requireStable(stable).timeoutMs(60_000);
        ListConsumerGroupOffsetsSpec spec = new ListConsumerGroupOffsetsSpec().topicPartitions(partitions);
        Map<TopicPartition, OffsetAndMetadata> found =
            admin.listConsumerGroupOffsets(Map.of("g", spec), options).partitionsToOffsetAndMetadata().get();
        return found.get(KEY) == null ? "nothing" : "" + found.get(KEY).offset();
    }

    static String looks() throws Exception {
        List<TopicPartition> named = List.of(KEY);
        return "stable " + committed(named, true) + ", stable of all " + committed(null, true) + ", not stable " + committed(named, false);
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", arguments[0], "transactional.id", "x", "transaction.timeout.ms", 600_000);
        admin = Admin.create(Map.of("bootstrap.servers", arguments[0]));
        admin.createTopics(List.of(new NewTopic("t", 1, (short) 1))).all().get();
        KafkaProducer<String, String> producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        producer.initTransactions();
        List<String> seen = new ArrayList<>();
        for (long offset : List.of(3L, 10L)) {
            producer.beginTransaction();
            producer.send(new ProducerRecord<>("t", "x")).get();
            producer.sendOffsetsToTransaction(Map.of(KEY, new OffsetAndMetadata(offset)), new ConsumerGroupMetadata("g"));
            if (offset == 10) seen.add(looks());
            producer.commitTransaction();
            for (int i = 0; i < 60 && !committed(null, true).equals("" + offset); i++) Thread.sleep(500);
            seen.add(looks());
        }
        producer.close();
        System.out.println(arguments[1] + ": 3 is committed: " + seen.get(0) + "; 10 is pending: " + seen.get(1) + "; 10 is committed: " + seen.get(2));
        System.exit(seen.equals(List.of(
            "stable 3, stable of all 3, not stable 3",
            "stable nothing, stable of all nothing, not stable 3",
            "stable 10, stable of all 10, not stable 10")) ? 0 : 1);
    }
}
JAVA

answer=0
for release in 3.9.1 4.4.0; do
  start_kafka "$release"
  java -cp "$work/kafka-$release/jars/*" "$work/Look.java" "$servers" "$release" 2>"$work/java.txt" || { answer=1; tail -5 "$work/java.txt"; }
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
done
exit "$answer"
