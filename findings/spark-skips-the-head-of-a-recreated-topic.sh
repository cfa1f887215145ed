#!/usr/bin/env bash
# A topic that is deleted and created again between two runs of a Spark stream that reads it.
#
# One would guess: failOnDataLoss is true by default, and Spark's guide names deleted topics as the case that it is for. So the second run
# fails, or begins the new topic at its start; the broker has told topic ids to every client since Kafka 2.8.
#
# What happens (PySpark 4.2.0 with spark-sql-kafka-0-10_2.13 4.2.0, kafka_2.13 4.3.1): the checkpoint holds offsets and no topic id. If the
# new topic has become longer than the old one was, the stream goes on at the old offset. It skips what is before it, says nothing, and
# ends with exit code 0.
#
# Who is hurt: who reads or copies topics by Structured Streaming and trusts failOnDataLoss to tell. Tests that create a topic again and
# keep the checkpoint see it first.
#
# Needs bash, Python 3.11 with venv, Java 17, Maven. Exits 0 while this is so, 1 once it has changed.
set -euo pipefail

directory=$(mktemp -d)
broker=""
cleanup() {
  if [ -n "$broker" ]; then kill "$broker" 2>/dev/null || true; wait "$broker" 2>/dev/null || true; fi
  rm -rf "$directory"
}
trap cleanup EXIT

pom() {
  cat > "$directory/pom.xml" <<POM
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
  <dependencies>$1
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
POM
  (cd "$directory" && mvn -q -B dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$directory/$2")
}
pom '<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>4.3.1</version></dependency>' broker
pom '<dependency><groupId>org.apache.spark</groupId><artifactId>spark-sql-kafka-0-10_2.13</artifactId><version>4.2.0</version></dependency>' spark
python3.11 -m venv "$directory/venv"
"$directory/venv/bin/pip" install -q pyspark==4.2.0 confluent-kafka==2.16.1

free_port() { python3.11 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
port=$(free_port)
controller=$(free_port)
cat > "$directory/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller
advertised.listeners=PLAINTEXT://127.0.0.1:$port
log.dirs=$directory/data
offsets.topic.replication.factor=1
PROPERTIES
java -cp "$directory/broker/*" kafka.tools.StorageTool format --cluster-id=AAAAAAAAAAAAAAAAAAAAAA --config "$directory/server.properties" \
  > "$directory/format.log" 2>&1
java -Xmx256m -cp "$directory/broker/*" kafka.Kafka "$directory/server.properties" >> "$directory/broker.log" 2>&1 &
broker=$!
for _ in $(seq 240); do
  if (exec 3<> "/dev/tcp/127.0.0.1/$port") 2>/dev/null; then break; fi
  sleep 0.25
done

cat > "$directory/topic.py" <<'PYTHON'
import sys, time

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

server, prefix, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
admin = AdminClient({"bootstrap.servers": server})
if "t" in admin.list_topics(timeout=30).topics:
    admin.delete_topics(["t"])["t"].result(30)
    while "t" in admin.list_topics(timeout=30).topics:
        time.sleep(0.1)
admin.create_topics([NewTopic("t", 1, 1)])["t"].result(30)
producer = Producer({"bootstrap.servers": server})
for number in range(count):
    producer.produce("t", f"{prefix}-{number}".encode())
assert producer.flush(60) == 0
PYTHON
cat > "$directory/stream.py" <<'PYTHON'
import sys

from pyspark.sql import SparkSession

server, directory = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
spark.sparkContext.setLogLevel("WARN")
source = {"kafka.bootstrap.servers": server, "subscribe": "t", "startingOffsets": "earliest"}
records = spark.readStream.format("kafka").options(**source).load().selectExpr("CAST(value AS STRING) AS value")
target = {"path": f"{directory}/out", "checkpointLocation": f"{directory}/checkpoint"}
records.writeStream.format("text").options(**target).trigger(availableNow=True).start().awaitTermination()
PYTHON

stream() {
  jars=$(ls "$directory"/spark/{spark-sql-kafka,spark-token-provider-kafka,kafka-clients,commons-pool2}-*.jar | paste -sd,)
  SPARK_LOCAL_IP=127.0.0.1 PYSPARK_PYTHON="$directory/venv/bin/python" "$directory/venv/bin/spark-submit" --master 'local[1]' --jars "$jars" \
    "$directory/stream.py" "127.0.0.1:$port" "$directory" > "$directory/stream.log" 2>&1
}
"$directory/venv/bin/python" "$directory/topic.py" "127.0.0.1:$port" old 100
stream
"$directory/venv/bin/python" "$directory/topic.py" "127.0.0.1:$port" new 150
code=0
stream || code=$?
read_new=$(cat "$directory"/out/*.txt | grep -c '^new-' || true)
said=$(grep -ci 'data loss\|recreated\|may have been lost\|out of range' "$directory/stream.log" || true)
printf 'of the 150 records of the new topic the second run read %s; exit code %s; lines of its log about a loss: %s\n' "$read_new" "$code" "$said"
[ "$read_new" = 50 ] && [ "$code" = 0 ] && [ "$said" = 0 ]
