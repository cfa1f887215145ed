#!/usr/bin/env bash
# Admin.deleteConsumerGroups deletes share groups, and deleteShareGroups deletes consumer groups.
#
# One would guess: each call is for its kind, as the calls beside it: altering a share group's offsets as those of a consumer group is
# refused, and the other way round.
# What happens: both succeed, and the group of the other kind is gone, with its offsets. For offsets, the kinds are told apart.
# With: broker and Java client 4.4.0.
# Hurt: whoever cleans up by lists of names, in scripts or tools that know one kind of group: look at the group's type before.
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
import java.util.*;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TopicExistsException;

public class Look {
  interface Call {
    Object get() throws Exception;
  }

  static String tried(Call call) throws Exception {
    try {
      call.get();
      return "done";
    } catch (ExecutionException problem) {
      return problem.getCause().getClass().getSimpleName();
    }
  }

  public static void main(String[] words) throws Exception {
    var admin = Admin.create(Map.of("bootstrap.servers", words[0]));
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
    var partition = new TopicPartition("t", 0);
    admin.alterShareGroupOffsets("shared", Map.of(partition, 0L)).all().get();
    admin.alterConsumerGroupOffsets("consumed", Map.of(partition, new OffsetAndMetadata(0))).all().get();
    var asConsumer = tried(() -> admin.alterConsumerGroupOffsets("shared", Map.of(partition, new OffsetAndMetadata(1))).all().get());
    var asShare = tried(() -> admin.alterShareGroupOffsets("consumed", Map.of(partition, 1L)).all().get());
    int before = admin.listGroups().all().get().size();
    System.out.println("offsets of the other kind: " + asConsumer + " and " + asShare + ", groups " + before);
    var shared = tried(() -> admin.deleteConsumerGroups(List.of("shared")).all().get());
    var consumed = tried(() -> admin.deleteShareGroups(List.of("consumed")).all().get());
    int after = admin.listGroups().all().get().size();
    System.out.println("deleting as the other kind: " + shared + " and " + consumed + ", groups " + after);
    var refused = "GroupIdNotFoundException";
    boolean told = asConsumer.equals(refused) && asShare.equals(refused) && before == 2 && shared.equals("done") && consumed.equals("done") && after == 0;
    System.exit(told ? 0 : 1);
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
