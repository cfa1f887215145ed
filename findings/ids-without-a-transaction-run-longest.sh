#!/usr/bin/env bash
# "Transactions that run longer than" (Admin.listTransactions with filterOnDuration, KIP-994) also lists ids that have no transaction.
#
# One would guess: filterOnDuration(one year) on a cluster that is a minute old lists nothing, and 0 only what is open at the moment.
# What happens: an id that never began a transaction, and only was initialised, is listed as running longer than a year. With 0, finished
# transactions are listed too: an id keeps its last start. Only for open transactions the filter does what it says.
# With: brokers and Java clients 3.9.1 and 4.4.0.
# Hurt: whoever looks for hanging transactions by this filter alone, and aborts or fences what it lists: idle producers. Filter by the state
# Ongoing too.
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
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Look {
  static String servers;
  static Admin admin;

  static KafkaProducer<byte[], byte[]> producer(String id) {
    Map<String, Object> config = Map.of("bootstrap.servers", servers, "transactional.id", id);
    var producer = new KafkaProducer<byte[], byte[]>(config, new ByteArraySerializer(), new ByteArraySerializer());
    producer.initTransactions();
    return producer;
  }

  static void begin(KafkaProducer<byte[], byte[]> producer) throws Exception {
    producer.beginTransaction();
    producer.send(new ProducerRecord<>("t", new byte[1])).get();
  }

  static Map<String, String> longer(long milliseconds) throws Exception {
    var found = new TreeMap<String, String>();
    for (var one : admin.listTransactions(new ListTransactionsOptions().filterOnDuration(milliseconds)).all().get())
      found.put(one.transactionalId(), one.state().toString());
    return found;
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
    var idle = producer("idle");
    var done = producer("done");
    begin(done);
    done.commitTransaction();
    var open = producer("open");
    begin(open);
    Thread.sleep(2_000);
    var year = longer(365L * 24 * 3_600_000);
    var none = longer(0);
    System.out.println(words[1] + ": longer than a year: " + year + ", longer than 0: " + none);
    open.abortTransaction();
    boolean told = year.equals(Map.of("idle", "Empty")) && none.keySet().equals(Set.of("idle", "done", "open"));
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
