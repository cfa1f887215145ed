#!/usr/bin/env bash
# A topic whose only record was refused gets the marker of the transaction: its end offset becomes 1, and there is nothing in it to read.
#
# One would guess: a record that the broker refuses (RecordTooLargeException) leaves no trace. A topic that nothing was written to stays empty,
# and the transaction has no part in it.
# What happens: the partition belongs to the transaction before the record is looked at; DescribeTransactions shows it. The producer has to
# abort, and the abort marker is written there, as in the topic that took its record. The refused one's ends are 0 and 1, and a consumer
# gets nothing. On Kafka 4.4.0, where the broker adds the partition itself, it is the same as on 3.9.1.
# With: brokers and Java clients 3.9.1 and 4.4.0.
# Hurt: whoever asks the offsets whether a topic is empty or unused (end is 0, or end equals begin), and copies or deletes by that; and whoever
# takes a marker for a proof that the transaction has records before it.
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


  static long offset(TopicPartition partition, OffsetSpec spec) throws Exception {
    return admin.listOffsets(Map.of(partition, spec)).all().get().get(partition).offset();
  }

  public static void main(String[] words) throws Exception {
    admin = Admin.create(Map.of("bootstrap.servers", words[0]));
    create(new NewTopic("large", 1, (short) 1), new NewTopic("small", 1, (short) 1).configs(Map.of("max.message.bytes", "1000")));
    var large = new TopicPartition("large", 0);
    var small = new TopicPartition("small", 0);
    Map<String, Object> config = Map.of("bootstrap.servers", words[0], "transactional.id", "orders");
    var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    producer.initTransactions();
    producer.beginTransaction();
    producer.send(new ProducerRecord<>("large", "x")).get();
    boolean refused = false;
    try {
      producer.send(new ProducerRecord<>("small", "x".repeat(2_000))).get();
    } catch (ExecutionException problem) {
      refused = problem.getCause() instanceof RecordTooLargeException;
    }
    long before = offset(small, OffsetSpec.latest());
    var partitions = admin.describeTransactions(List.of("orders")).all().get().get("orders").topicPartitions();
    producer.abortTransaction();
    for (int tries = 0; tries < 60 && offset(large, OffsetSpec.latest()) < 2; tries++) Thread.sleep(500);
    for (int tries = 0; tries < 10 && offset(small, OffsetSpec.latest()) < 1; tries++) Thread.sleep(500);
    long begin = offset(small, OffsetSpec.earliest());
    long end = offset(small, OffsetSpec.latest());
    int got = 0;
    try (var consumer = new KafkaConsumer<>(Map.<String, Object>of("bootstrap.servers", words[0]), new StringDeserializer(), new StringDeserializer())) {
      consumer.assign(List.of(small));
      consumer.seekToBeginning(List.of(small));
      for (long until = System.currentTimeMillis() + 3_000; System.currentTimeMillis() < until; ) got += consumer.poll(Duration.ofMillis(500)).count();
    }
    System.out.println(words[1] + ": refused: " + refused + ", the transaction's partitions: " + partitions + "; the refusing one ends at " + before
        + " before the abort, then its ends are " + begin + " and " + end + ", records: " + got);
    boolean told = refused && partitions.equals(Set.of(large, small)) && before == 0 && begin == 0 && end == 1 && got == 0;
    System.exit(told ? 0 : 1);
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
