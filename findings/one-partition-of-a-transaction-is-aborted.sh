#!/usr/bin/env bash
# Admin.abortTransaction on a partition of a running transaction aborts what it wrote there until then, and nothing else: it then commits.
#
# One would guess: the transaction is aborted as a whole, and the producer hears of it; or the call, which is made for transactions that
# nobody ends any more, is refused, as the coordinator knows this one.
# What happens: the call succeeds and writes an abort marker in that one partition. The coordinator still says Ongoing, for both partitions.
# The producer sends one more record there, and its commit succeeds. With read_committed one sees the record of the other partition and
# the one that came after the abort, but not the one from before. The next transaction succeeds as well.
# With: brokers and Java clients 3.9.1 and 4.4.0.
# Hurt: whoever clears "hanging" transactions by a list of old ones, a slow producer among them: an acknowledged transaction is there in
# part, and nobody has an error. And whoever takes all of a transaction to end alike on all partitions, as when copying whole
# transactions. Ask the coordinator for the transaction's state before.
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
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.*;

public class Look {
  static final int PARTITIONS = 1;
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


  static void send(KafkaProducer<String, String> producer, String topic, String value) throws Exception {
    producer.send(new ProducerRecord<>(topic, value)).get();
  }

  public static void main(String[] words) throws Exception {
    admin = Admin.create(Map.of("bootstrap.servers", words[0]));
    create("a", "b");
    var a = new TopicPartition("a", 0);
    var b = new TopicPartition("b", 0);
    Map<String, Object> config = Map.of("bootstrap.servers", words[0], "transactional.id", "orders");
    var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    producer.initTransactions();
    producer.beginTransaction();
    send(producer, "a", "a: before");
    send(producer, "b", "b");
    var writer = admin.describeProducers(List.of(a)).all().get().get(a).activeProducers().get(0);
    admin.abortTransaction(new AbortTransactionSpec(a, writer.producerId(), (short) writer.producerEpoch(), writer.coordinatorEpoch().orElse(-1))).all().get();
    var known = admin.describeTransactions(List.of("orders")).all().get().get("orders");
    send(producer, "a", "a: after");
    producer.commitTransaction();
    producer.beginTransaction();
    send(producer, "a", "a: next");
    producer.commitTransaction();
    var seen = new TreeSet<String>();
    Map<String, Object> reading = Map.of("bootstrap.servers", words[0], "isolation.level", "read_committed");
    try (var consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
      consumer.assign(List.of(a, b));
      consumer.seekToBeginning(List.of(a, b));
      for (long end = System.currentTimeMillis() + 5_000; System.currentTimeMillis() < end; )
        for (var record : consumer.poll(Duration.ofMillis(500))) seen.add(record.value());
    }
    System.out.println(words[1] + ": after the abort in a: " + known.state() + " " + known.topicPartitions() + "; both commits succeed; read: " + seen);
    boolean told = known.state() == TransactionState.ONGOING && known.topicPartitions().equals(Set.of(a, b));
    System.exit(told && seen.equals(Set.of("a: after", "a: next", "b")) ? 0 : 1);
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
