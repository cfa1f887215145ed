#!/usr/bin/env bash
# A lost answer to a commit, and a transaction coordinator that restarts (or moves) before the client asks again.
#
# One would guess: KIP-360 lets a producer recover by InitProducerId with the pair (producer id, epoch) that it last knew; the coordinator
# recognises the pair before the current one, "this could be a retry". The pairs are in the transaction log, so a restart changes nothing.
# And EndTxn(commit) must not be repeated after KIP-890, because each commit raises the epoch.
#
# What happens (kafka_2.13 4.3.1, transaction.version 2; kafka-python 3.0.12 encodes the requests): the other way round. The log does not
# hold the previous epoch (TransactionLog reads it as -1), so after a restart InitProducerId with the pair of before the commit is refused
# with PRODUCER_FENCED (90), though nobody has taken the id. EndTxn(commit) again with the old pair is recognised all the
# same: it answers NONE and the pair to go on with, and commits nothing.
#
# Who is hurt: a client that takes PRODUCER_FENCED of its own InitProducerId for a newer instance, and stops. Brokers that are restarted
# one after the other under load bring it about.
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

cat > "$directory/pom.xml" <<'POM'
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>4.3.1</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
POM
(cd "$directory" && mvn -q -B dependency:copy-dependencies -DoutputDirectory="$directory/jars")
python3.11 -m venv "$directory/venv"
"$directory/venv/bin/pip" install -q kafka-python==3.0.12

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
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
PROPERTIES
java -cp "$directory/jars/*" kafka.tools.StorageTool format --cluster-id=AAAAAAAAAAAAAAAAAAAAAA --config "$directory/server.properties" \
  > "$directory/format.log" 2>&1

start() {
  java -Xmx256m -cp "$directory/jars/*" kafka.Kafka "$directory/server.properties" >> "$directory/broker.log" 2>&1 &
  broker=$!
  for _ in $(seq 240); do
    if (exec 3<> "/dev/tcp/127.0.0.1/$port") 2>/dev/null; then return; fi
    sleep 0.25
  done
  echo "the broker did not start"; tail -5 "$directory/broker.log"; exit 1
}

cat > "$directory/ask.py" <<'PYTHON'
import json, socket, struct, sys, time

from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.parser import KafkaProtocol
from kafka.protocol.producer import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest
from kafka.protocol.admin import CreateTopicsRequest

port, what, path = int(sys.argv[1]), sys.argv[2], sys.argv[3]
COORDINATOR_IS_COMING, FENCED = {14, 15, 16, 51}, 90


def ask(request, version):
    request.API_VERSION = version
    parser = KafkaProtocol(client_id="finding")
    parser.send_request(request)
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        connection.sendall(parser.send_bytes())
        while True:
            for _, answer in parser.receive_bytes(connection.recv(1 << 16)):
                return answer


def until(build, version, code=lambda answer: answer.error_code):
    for _ in range(120):
        answer = ask(build(), version)
        if code(answer) not in COORDINATOR_IS_COMING:
            return answer
        time.sleep(0.25)
    raise SystemExit(f"no coordinator: {answer}")


def find(name):
    until(lambda: FindCoordinatorRequest(key=name, key_type=1, coordinator_keys=[name]), 4, lambda answer: answer.coordinators[0].error_code)


def init(name, pair):
    find(name)
    return until(lambda: InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60000, producer_id=pair[0], producer_epoch=pair[1]), 5)


def commit(name, pair):
    find(name)
    return until(lambda: EndTxnRequest(transactional_id=name, producer_id=pair[0], producer_epoch=pair[1], committed=True), 5)


if what == "commit":
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1, assignments=[], configs=[])
    ask(CreateTopicsRequest(topics=[topic], timeout_ms=30000, validate_only=False), 5)
    held = {}
    for name in ("by init", "by commit"):
        first = init(name, (-1, -1))
        pair = first.producer_id, first.producer_epoch
        added = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=[0])
        until(
            lambda: AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=pair[0],
                v3_and_below_producer_epoch=pair[1],
                v3_and_below_topics=[added],
            ),
            3,
            lambda answer: answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code or 0,
        )
        done = commit(name, pair)
        print(f"{name}: committed with {pair}: error {done.error_code}, answer {(done.producer_id, done.producer_epoch)}, which gets lost")
        held[name] = [pair, (done.producer_id, done.producer_epoch)]
    json.dump(held, open(path, "w"))
else:
    held = json.load(open(path))
    old, new = held["by init"]
    refused = init("by init", old)
    print(f"InitProducerId with {tuple(old)}: error {refused.error_code}")
    old, new = held["by commit"]
    again = commit("by commit", old)
    print(f"EndTxn(commit) again with {tuple(old)}: error {again.error_code}, answer {(again.producer_id, again.producer_epoch)}")
    as_told = refused.error_code == FENCED and again.error_code == 0 and [again.producer_id, again.producer_epoch] == new
    raise SystemExit(0 if as_told else 1)
PYTHON

start
"$directory/venv/bin/python" "$directory/ask.py" "$port" commit "$directory/held.json"
kill "$broker"
wait "$broker" || true
start
"$directory/venv/bin/python" "$directory/ask.py" "$port" retry "$directory/held.json"
