#!/usr/bin/env bash
# Admin.fenceProducers with an id that no producer ever used succeeds, and makes the id.
#
# One would guess: an unknown id is an error (as for describeTransactions), or there is nothing to fence and nothing changes.
# What happens: the call succeeds with a new producer id and epoch 0. From then on the id is listed, in the state Empty, with the admin
# client's time-out as its transaction time-out. So a mistyped id is reported as fenced, and the producer that was meant goes on writing.
# With: brokers and Java clients 3.9.1 and 4.4.0.
# Hurt: whoever fences by a list that was typed or is old, and takes success as proof; and whoever reads the list of ids as those of
# producers.
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
  public static void main(String[] words) throws Exception {
    var admin = Admin.create(Map.of("bootstrap.servers", words[0], "request.timeout.ms", 20_000));
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
    Map<String, Object> config = Map.of("bootstrap.servers", words[0], "transactional.id", "orders-1");
    var producer = new KafkaProducer<byte[], byte[]>(config, new ByteArraySerializer(), new ByteArraySerializer());
    producer.initTransactions();
    String unknown;
    try {
      unknown = admin.describeTransactions(List.of("order-1")).all().get().toString();
    } catch (ExecutionException problem) {
      unknown = problem.getCause().getClass().getSimpleName();
    }
    var fenced = admin.fenceProducers(List.of("order-1"));
    short epoch = fenced.epochId("order-1").get();
    var made = admin.describeTransactions(List.of("order-1")).all().get().get("order-1");
    producer.beginTransaction();
    producer.send(new ProducerRecord<>("t", new byte[1])).get();
    producer.commitTransaction();
    var ids = new TreeMap<String, String>();
    for (var one : admin.listTransactions().all().get()) ids.put(one.transactionalId(), one.state().toString());
    System.out.println(words[1] + ": order-1 before: " + unknown + ", fenced with epoch " + epoch + ", then " + made.state() + " with a time-out of "
        + made.transactionTimeoutMs() + " ms; orders-1 committed; ids " + ids);
    boolean told = unknown.equals("TransactionalIdNotFoundException") && epoch == 0 && made.transactionTimeoutMs() == 20_000;
    System.exit(told && ids.keySet().equals(Set.of("order-1", "orders-1")) && ids.get("order-1").equals("Empty") ? 0 : 1);
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
