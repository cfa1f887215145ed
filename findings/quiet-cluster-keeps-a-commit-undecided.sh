#!/usr/bin/env bash
# The coordinator of a transaction that is committed, on an idle cluster of three brokers.
#
# One would guess: EndTxn(commit) is answered, some milliseconds later the markers are in the logs of the partitions, so that read_committed
# readers see the records, and the next transaction of the same id can begin.
#
# What happens (kafka_2.13 4.3.1 and 4.4.0, three brokers, transaction.version 2; kafka-python 3.0.12 encodes the requests): 300 ms after the
# commit, the first request of the next transaction is still answered CONCURRENT_TRANSACTIONS, each time. That request itself wakes the
# coordinator: 50 ms later the same one succeeds. If any request was sent to the coordinator's broker in between (here FindCoordinator), or
# 800 ms have passed, the first one succeeds. So it goes on when a request reaches its broker, or when a fetch of a follower ends
# (replica.fetch.wait.max.ms, 500 ms).
# A broker that adds partitions for a Produce of version 12 waits add.partitions.to.txn.retry.backoff.ms (20 ms) in this case.
#
# Who is hurt: who measures the delay of transactions on a quiet cluster: it is shorter as soon as anybody else uses the brokers.
#
# Needs bash, Python 3.11 with venv, Java 17, Maven. Exits 0 while this is so, 1 once it has changed.
set -euo pipefail

directory=$(mktemp -d)
brokers=()
cleanup() {
  for broker in "${brokers[@]}"; do kill -9 "$broker" 2>/dev/null || true; wait "$broker" 2>/dev/null || true; done
  rm -rf "$directory"
}
trap cleanup EXIT
python3.11 -m venv "$directory/venv"
"$directory/venv/bin/pip" install -q kafka-python==3.0.12

free_port() { python3.11 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

start() { # release
  mkdir -p "$directory/$1"
  cat > "$directory/$1/pom.xml" <<POM
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$1</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
POM
  (cd "$directory/$1" && mvn -q -B dependency:copy-dependencies -DoutputDirectory="$directory/$1/jars")
  ports=()
  voters=""
  controllers=()
  for node in 1 2 3; do
    ports+=("$(free_port)")
    controllers+=("$(free_port)")
    voters="$voters${voters:+,}$node@127.0.0.1:${controllers[node - 1]}"
  done
  for node in 1 2 3; do
    cat > "$directory/$1/$node.properties" <<PROPERTIES
process.roles=broker,controller
node.id=$node
controller.quorum.voters=$voters
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
listeners=PLAINTEXT://127.0.0.1:${ports[node - 1]},CONTROLLER://127.0.0.1:${controllers[node - 1]}
advertised.listeners=PLAINTEXT://127.0.0.1:${ports[node - 1]}
log.dirs=$directory/$1/data-$node
offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
transaction.state.log.num.partitions=1
PROPERTIES
    java -cp "$directory/$1/jars/*" kafka.tools.StorageTool format --cluster-id=AAAAAAAAAAAAAAAAAAAAAA \
      --config "$directory/$1/$node.properties" > "$directory/format.log" 2>&1
  done
  for node in 1 2 3; do
    java -Xmx256m -cp "$directory/$1/jars/*" kafka.Kafka "$directory/$1/$node.properties" > "$directory/$1/broker-$node.log" 2>&1 &
    brokers+=($!)
  done
}

cat > "$directory/ask.py" <<'PYTHON'
import socket, sys, time

from kafka.protocol.admin import CreateTopicsRequest
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.parser import KafkaProtocol
from kafka.protocol.producer import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest, ProduceRequest
from kafka.record.default_records import DefaultRecordBatchBuilder

ports = [int(port) for port in sys.argv[1:]]
NAME, TOPIC, ROUNDS = "id", "t", 20
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
CONCURRENT_TRANSACTIONS = 51


class Broker:
    def __init__(self, port):
        for _ in range(240):
            try:
                self.connection = socket.create_connection(("127.0.0.1", port), 30)
                break
            except OSError:
                time.sleep(0.25)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.parser = KafkaProtocol(client_id="finding")

    def send(self, request, version):
        request.API_VERSION = version
        self.parser.send_request(request)
        self.connection.sendall(self.parser.send_bytes())

    def receive(self):
        while True:
            for _, answer in self.parser.receive_bytes(self.connection.recv(1 << 16)):
                return answer

    def ask(self, request, version):
        self.send(request, version)
        return self.receive()


brokers = [Broker(port) for port in ports]


def until(ask, code):
    for _ in range(240):
        answer = ask()
        if code(answer) == 0:
            return answer
        time.sleep(0.25)
    raise SystemExit(f"not ready: {answer}")


found = until(
    lambda: brokers[0].ask(FindCoordinatorRequest(key=NAME, key_type=1, coordinator_keys=[NAME]), 4),
    lambda answer: answer.coordinators[0].error_code,
)
coordinator = brokers[found.coordinators[0].node_id - 1]
places = CreateTopicsRequest.CreatableTopic.CreatableReplicaAssignment
first_broker = brokers.index(coordinator) + 1
assignments = [places(partition_index=0, broker_ids=[(first_broker + n) % 3 + 1 for n in range(3)])]
topic = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=-1, replication_factor=-1, assignments=assignments, configs=[])
until(
    lambda: brokers[0].ask(CreateTopicsRequest(topics=[topic], timeout_ms=30000, validate_only=False), 5),
    lambda answer: answer.topics[0].error_code if answer.topics[0].error_code != 36 else 0,
)
time.sleep(3)
first = until(
    lambda: coordinator.ask(InitProducerIdRequest(transactional_id=NAME, transaction_timeout_ms=60000, producer_id=-1, producer_epoch=-1), 5),
    lambda answer: answer.error_code,
)
pair = first.producer_id, first.producer_epoch


def produce():
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=0, is_transactional=True, producer_id=pair[0], producer_epoch=pair[1], base_sequence=0, batch_size=1 << 16
    )
    builder.append(0, 1700000000000, b"key", b"value", [])
    data = ProduceRequest.TopicProduceData
    part = data.PartitionProduceData(index=0, records=bytes(builder.build()))
    return ProduceRequest(transactional_id=NAME, acks=-1, timeout_ms=30000, topic_data=[data(name=TOPIC, partition_data=[part])])


def add():
    """The error code of a transaction's first request."""
    added = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=NAME,
        v3_and_below_producer_id=pair[0],
        v3_and_below_producer_epoch=pair[1],
        v3_and_below_topics=[added],
    )
    return coordinator.ask(request, 3).results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code


def end(isolation):
    asked = ListOffsetsRequest.ListOffsetsTopic
    part = asked.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-1)
    request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=[asked(name=TOPIC, partitions=[part])])
    return leader.ask(request, 6).topics[0].partitions[0].offset


def commit():
    """Write a record and commit it. Milliseconds from the answer until read_committed readers see it."""
    global pair
    while (code := add()) == CONCURRENT_TRANSACTIONS:
        time.sleep(0.005)
    assert code == 0, code
    answer = leader.ask(produce(), 12).responses[0].partition_responses[0]
    assert answer.error_code == 0, answer
    top = end(READ_UNCOMMITTED)
    done = coordinator.ask(EndTxnRequest(transactional_id=NAME, producer_id=pair[0], producer_epoch=pair[1], committed=True), 5)
    assert done.error_code == 0, done
    pair = done.producer_id, done.producer_epoch
    began = time.monotonic()
    while end(READ_COMMITTED) < top:
        time.sleep(0.001)
    return 1000 * (time.monotonic() - began)


# The leader of the partition is not the broker of the coordinator: what is asked of it wakes nobody there.
leader = brokers[(brokers.index(coordinator) + 1) % 3]
kinds = {"300 ms after the commit": (0.3, False), "300 ms after it, FindCoordinator in between": (0.3, True), "800 ms after it": (0.8, False)}
found = {name: [] for name in kinds}
seen = []
for _ in range(ROUNDS):
    for name, (seconds, asks) in kinds.items():
        seen.append(commit())
        time.sleep(0.05)
        if asks:
            coordinator.ask(FindCoordinatorRequest(key=NAME, key_type=1, coordinator_keys=[NAME]), 4)
        time.sleep(seconds - 0.05)
        first = add()
        time.sleep(0.05)
        found[name].append((first, add()))
print(f"  records are readable after {sorted(seen)[len(seen) // 2]:.0f} ms (median)")
counts = {name: [sum(told[place] == CONCURRENT_TRANSACTIONS for told in codes) for place in (0, 1)] for name, codes in found.items()}
for name, (first, second) in counts.items():
    print(f"  {name}: CONCURRENT_TRANSACTIONS {first} of {ROUNDS} times, and {second} times 50 ms later")
(idle, again), (woken, _), (late, _) = counts.values()
raise SystemExit(0 if idle > ROUNDS / 2 and max(again, woken, late) < ROUNDS / 4 else 1)
PYTHON

for release in 4.3.1 4.4.0; do
  echo "kafka_2.13 $release"
  start "$release"
  "$directory/venv/bin/python" "$directory/ask.py" "${ports[@]}"
  for broker in "${brokers[@]}"; do kill -9 "$broker"; wait "$broker" 2>/dev/null || true; done
  brokers=()
done
