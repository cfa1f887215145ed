#!/usr/bin/env bash
# A transaction that has ended is described without its partitions, and on Kafka 4 with an epoch and a sequence that none of its records has.
#
# One would guess: until the next transaction begins, DescribeTransactions tells of the last one: its state, its partitions, and the producer id
# and epoch that stand in its records. And DescribeProducers tells the epoch and the last sequence that this producer wrote.
# What happens: while it is open, both say epoch 0, the partitions a-0 and b-0, and the last sequence 2 in a-0. After the commit the state is
# CompleteCommit, the start time is kept, and the partitions are none. On Kafka 4.4.0 both calls say epoch 1 then, and the last sequence in
# a-0, where three records are, is -1. On 3.9.1 epoch and sequence stay as they were.
# With: brokers and Java clients 3.9.1 and 4.4.0.
# Hurt: whoever waits for open transactions to end and then asks what was in them; and whoever looks in the log for the batches of a
# described (producer id, epoch), or compares sequences with what was written. Ask while it is open.
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


  static ProducerState producer(TopicPartition partition) throws Exception {
    return admin.describeProducers(List.of(partition)).all().get().get(partition).activeProducers().get(0);
  }

  static TransactionDescription transaction() throws Exception {
    return admin.describeTransactions(List.of("orders")).all().get().get("orders");
  }

  public static void main(String[] words) throws Exception {
    admin = Admin.create(Map.of("bootstrap.servers", words[0]));
    create("a", "b");
    var a = new TopicPartition("a", 0);
    Map<String, Object> config = Map.of("bootstrap.servers", words[0], "transactional.id", "orders");
    var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    producer.initTransactions();
    producer.beginTransaction();
    for (var topic : List.of("a", "a", "a", "b")) producer.send(new ProducerRecord<>(topic, "x")).get();
    var open = transaction();
    var writing = producer(a);
    producer.commitTransaction();
    for (int tries = 0; tries < 60 && transaction().state() != TransactionState.COMPLETE_COMMIT; tries++) Thread.sleep(500);
    var ended = transaction();
    var wrote = producer(a);
    System.out.println(words[1] + ", open: " + open + ", " + writing);
    System.out.println(words[1] + ", ended: " + ended + ", " + wrote);
    boolean told = open.topicPartitions().equals(Set.of(a, new TopicPartition("b", 0))) && open.producerEpoch() == 0
        && writing.producerEpoch() == 0 && writing.lastSequence() == 2 && ended.state() == TransactionState.COMPLETE_COMMIT
        && ended.topicPartitions().isEmpty() && ended.transactionStartTimeMs().equals(open.transactionStartTimeMs());
    boolean newer = words[1].startsWith("4");
    int epoch = newer ? 1 : 0;
    told &= ended.producerEpoch() == epoch && wrote.producerEpoch() == epoch && wrote.lastSequence() == (newer ? -1 : 2);
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
