#!/usr/bin/env bash
# Commit metadata from confluent-kafka for Python are one byte longer than the text that it was given.
#
# One would guess: TopicPartition(topic, 0, 5, metadata="mine") commits the text `mine`, and metadata="" commits none.
# What happens: it counts the NUL at the end of the C string. The broker stores `mine` and a NUL, and for the empty text one NUL. Its own
#   committed() gives the text without it, so a test in Python does not see it. Java's clients get the NUL: equals("mine") and isEmpty() are
#   false, and strict decoders of base64 refuse the text.
# Versions: confluent-kafka 2.16.1, broker and Java's admin client 4.3.1.
# Who is hurt: whoever compares or decodes commit metadata of other clients, or writes metadata in Python that a Java application shall read.
# Needs: bash, Python 3.11 with venv, Java 17, Maven.
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

topics() { java -cp "kafka/*" org.apache.kafka.tools.TopicCommand --bootstrap-server "127.0.0.1:$port" "$@"; }
topics --create --topic orders --partitions 1 --replication-factor 1 >topic.log 2>&1

python3 -m venv venv
venv/bin/pip -q install confluent-kafka==2.16.1
cat >commit.py <<'EOF'
import sys
from confluent_kafka import Consumer, TopicPartition

for group, metadata in (("text", "mine"), ("empty", "")):
    consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": group})
    consumer.commit(offsets=[TopicPartition("orders", 0, 0, metadata=metadata)], asynchronous=False)
    (seen,) = consumer.committed([TopicPartition("orders", 0)], timeout=30)
    print(f"Python committed {metadata!r} and reads {seen.metadata!r}")
    consumer.close()
EOF
venv/bin/python commit.py "127.0.0.1:$port"

cat >Look.java <<'EOF'
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;

public class Look {
    public static void main(String[] arguments) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", (Object) arguments[0]))) {
            for (String group : new String[] {"text", "empty"}) {
                for (var found : admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().values()) {
                    System.out.println("Java reads " + found.metadata().length() + " characters: " + found.metadata().replace("\0", "NUL"));
                }
            }
        }
    }
}
EOF
java -cp "kafka/*" Look.java "127.0.0.1:$port" | tee seen

if printf 'Java reads 5 characters: mineNUL\nJava reads 1 characters: NUL\n' | cmp -s - seen; then
    echo "as told: one NUL more"
else
    echo "changed: Java reads something else by now"
    exit 1
fi
