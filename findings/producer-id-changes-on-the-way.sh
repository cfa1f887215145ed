#!/usr/bin/env bash
# On Kafka 4 a Java producer does not keep its producer id: after at most 32,767 transactions it goes on under another one, without a word.
#
# One would guess: a producer gets its id at initTransactions() and has it until it is closed. On Kafka 3.9.1 it is so: id and epoch stay.
# What happens: each commit raises the epoch. It ends at 32767, so the commit of the transaction with epoch 32766 brings a new id with epoch
# 0, and the next transaction is written with it. The producer sees nothing. A search for transactions by the first id finds nothing any more,
# while the partition lists both ids. Here most of the epochs are used up by fencing the id before; ten transactions a second need an hour.
# With: brokers and Java clients 3.9.1 and 4.4.0.
# Hurt: whoever follows, counts or limits producers by their ids (a new id looks like a new producer), or keeps what was read of a
# transactional id by the producer id that it once had.
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


  static TransactionDescription transaction() throws Exception {
    return admin.describeTransactions(List.of("orders")).all().get().get("orders");
  }

  public static void main(String[] words) throws Exception {
    admin = Admin.create(Map.of("bootstrap.servers", words[0]));
    create("t");
    Map<String, Object> config = Map.of("bootstrap.servers", words[0], "transactional.id", "orders");
    for (short epoch = 0; epoch < 32_761; ) epoch = admin.fenceProducers(List.of("orders")).epochId("orders").get();
    var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    producer.initTransactions();
    var pairs = new ArrayList<String>();
    var ids = new LinkedHashSet<Long>();
    for (int i = 0; i < 8; i++) {
      producer.beginTransaction();
      producer.send(new ProducerRecord<>("t", "x")).get();
      var open = transaction();
      ids.add(open.producerId());
      pairs.add(open.producerId() + "/" + open.producerEpoch());
      producer.commitTransaction();
      for (int tries = 0; tries < 60 && transaction().state() != TransactionState.COMPLETE_COMMIT; tries++) Thread.sleep(500);
    }
    long first = ids.iterator().next();
    var found = admin.listTransactions(new ListTransactionsOptions().filterProducerIds(List.of(first))).all().get();
    var partition = new TopicPartition("t", 0);
    var listed = new TreeSet<Long>();
    for (var state : admin.describeProducers(List.of(partition)).all().get().get(partition).activeProducers()) listed.add(state.producerId());
    System.out.println(words[1] + ": producer id and epoch of one producer's transactions: " + pairs + "; by the first id: " + found + "; the partition lists " + listed);
    var told = new ArrayList<String>();
    boolean newer = words[1].startsWith("4");
    for (int epoch = 32_762; told.size() < 8; epoch += newer ? 1 : 0) told.add(epoch <= 32_766 ? first + "/" + epoch : Collections.max(listed) + "/" + (epoch - 32_767));
    boolean both = newer ? found.isEmpty() && listed.size() == 2 : found.size() == 1 && listed.size() == 1;
    System.exit(both && pairs.equals(told) && listed.containsAll(ids) ? 0 : 1);
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
