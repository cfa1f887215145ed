#!/usr/bin/env bash
# A record of Kafka whose timestamp is in nanoseconds instead of milliseconds, in a topic that Spark reads.
#
# One would guess: Spark gives such a record a time far in the future, or null, and all other columns and records can be read.
# What happens (PySpark 4.2.0 with spark-sql-kafka-0-10_2.13 4.2.0, kafka_2.13 4.3.1): each of the batch queries here fails with "long
# overflow", also a count, and one that selects only values. With a timestamp in microseconds (the year 57868) these two work, and only
# collect() of whole records in Python fails: "year 57868 is out of range". The topic allows both by message.timestamp.after.max.ms.
#
# Who is hurt: who reads topics that anybody writes to. One wrong unit in one producer ends all jobs that read its record.
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
import sys

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

server = sys.argv[1]
admin = AdminClient({"bootstrap.servers": server})
config = {"retention.ms": "-1", "message.timestamp.before.max.ms": str(2**63 - 1), "message.timestamp.after.max.ms": str(2**63 - 1)}
producer = Producer({"bootstrap.servers": server})
for topic, timestamp in {"right": 1764000000000, "micros": 1764000000000123, "nanos": 1764000000000123456}.items():
    admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(30)
    for value in (timestamp, 1764000000000):
        producer.produce(topic, str(value).encode(), timestamp=value)
assert producer.flush(60) == 0
PYTHON
cat > "$directory/look.py" <<'PYTHON'
import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")


def tried(act):
    """The result, or in which words it failed."""
    try:
        return act()
    except Exception as problem:
        return next((words for words in ("long overflow", "is out of range") if words in str(problem)), repr(problem))


for topic in ("right", "micros", "nanos"):
    records = spark.read.format("kafka").options(**{"kafka.bootstrap.servers": sys.argv[1], "subscribe": topic}).load()
    counted, values = tried(records.count), tried(lambda: len(records.select("value").collect()))
    print(f"SEEN {topic}: count {counted}, values {values}, whole records {tried(lambda: len(records.collect()))}")
PYTHON
"$directory/venv/bin/python" "$directory/topic.py" "127.0.0.1:$port"
jars=$(ls "$directory"/spark/{spark-sql-kafka,spark-token-provider-kafka,kafka-clients,commons-pool2}-*.jar | paste -sd,)
SPARK_LOCAL_IP=127.0.0.1 PYSPARK_PYTHON="$directory/venv/bin/python" "$directory/venv/bin/spark-submit" --master 'local[1]' --conf spark.sql.session.timeZone=UTC --jars "$jars" \
  "$directory/look.py" "127.0.0.1:$port" > "$directory/look.log" 2>&1 || true
seen=$(grep -ao "SEEN .*" "$directory/look.log") || { tail -20 "$directory/look.log"; exit 2; }
echo "$seen"
[ "$seen" = "SEEN right: count 2, values 2, whole records 2
SEEN micros: count 2, values 2, whole records is out of range
SEEN nanos: count long overflow, values long overflow, whole records long overflow" ]
