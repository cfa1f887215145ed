#!/usr/bin/env bash
# One group with the empty name, and nobody can describe the groups of a cluster all at once.
#
# One would guess: a consumer group needs a name. And where a listing shows a group, describing it works, or fails for that group alone.
# What happens: brokers take offset commits for the group with the empty name (KIP-289 deprecated it; Java's consumer 3.9.1 still commits for
#   it, with assigned partitions). The group is listed, its offsets are read, DescribeGroups answers for it. ConsumerGroupDescribe (KIP-848)
#   answers INVALID_GROUP_ID (24), not GROUP_ID_NOT_FOUND (69) as for every other classic group. Java's admin client asks that request first
#   and falls back to DescribeGroups only after 69. So `kafka-consumer-groups.sh --describe --all-groups` ends with an error and shows no
#   group at all, also none of the others.
# Versions: broker and tools 4.3.1; the consumer that commits is 3.9.1.
# Who is hurt: whoever watches the lag of all groups of a cluster in one call, and every tool that takes the answer for one group for all.
# Needs: bash, Python 3.11, Java 17, Maven.
set -euo pipefail

folder=$(mktemp -d)
broker=
trap '[ -z "$broker" ] || { kill "$broker" && wait "$broker" || true; }; rm -rf "$folder"' EXIT
cd "$folder"

jars() { # folder, then group:artifact:version ...
    local into=$1 one
    shift
    {
        echo '<project><modelVersion>4.0.0</modelVersion><groupId>finding</groupId><artifactId>finding</artifactId><version>1</version><dependencies>'
        for one; do
            IFS=: read -r group artifact version <<<"$one"
            echo "<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version></dependency>"
        done
        echo '</dependencies></project>'
    } >"$into.xml"
    mvn -q -B -f "$into.xml" dependency:copy-dependencies -DoutputDirectory="$folder/$into"
}
jars kafka org.apache.kafka:kafka_2.13:4.3.1 org.apache.kafka:kafka-tools:4.3.1 org.slf4j:slf4j-nop:1.7.36
jars older org.apache.kafka:kafka-clients:3.9.1 org.slf4j:slf4j-nop:1.7.36

read -r port controller < <(python3 -c '
import socket
found = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(one.getsockname()[1] for one in found))')
cat >broker.properties <<EOF
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller
log.dirs=$folder/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
EOF
java -cp "kafka/*" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAQ -c broker.properties >format.log 2>&1
java -Xmx512m -cp "kafka/*" kafka.Kafka broker.properties >broker.log 2>&1 &
broker=$!

groups() { java -cp "kafka/*" org.apache.kafka.tools.consumer.group.ConsumerGroupCommand --bootstrap-server "127.0.0.1:$port" "$@"; }
topics() { java -cp "kafka/*" org.apache.kafka.tools.TopicCommand --bootstrap-server "127.0.0.1:$port" "$@"; }
topics --create --topic orders --partitions 1 --replication-factor 1 >topic.log 2>&1

cat >Commit.java <<'EOF'
import java.util.Map;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Commit {
    public static void main(String[] arguments) {
        for (String group : new String[] {"billing", ""}) {
            Map<String, Object> settings = Map.of("bootstrap.servers", arguments[0], "group.id", group);
            try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                TopicPartition place = new TopicPartition("orders", 0);
                consumer.assign(java.util.List.of(place));
                consumer.commitSync(Map.of(place, new OffsetAndMetadata(0)));
                System.out.println("committed for the group '" + group + "'");
            }
        }
    }
}
EOF
java -cp "older/*" Commit.java "127.0.0.1:$port"

echo "--list:"
groups --list 2>/dev/null | sed "s/.*/'&'/" | tee listed
echo "--describe --group billing:"
groups --describe --group billing 2>/dev/null | tee one
echo "--describe --all-groups:"
groups --describe --all-groups >all 2>&1 || true
grep -m 1 "Error" all || cat all

if grep -q "''" listed && grep -q "^billing .*orders" one && grep -q InvalidGroupIdException all && ! grep -q "^billing .*orders" all; then
    echo "as told: the empty name is listed, and hides every other group"
else
    echo "changed: the commands above answer otherwise by now"
    exit 1
fi
