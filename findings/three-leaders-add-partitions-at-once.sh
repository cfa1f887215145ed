#!/usr/bin/env bash
# A transaction's first Produce requests, to the leaders of three partitions on three brokers, leave at the same moment.
#
# One would guess: with transaction.version 2 (KIP-890) the client need not send AddPartitionsToTxn, because each broker adds its partitions
# itself. That saves a round trip, so the transaction gets faster. And requests to three brokers take as long as one.
#
# What happens (kafka_2.13 4.3.1 and 4.4.0, three brokers, transaction.version 2; kafka-python 3.0.12 encodes the requests): each broker asks
# the coordinator, the coordinator writes one change at a time, and tells the others CONCURRENT_TRANSACTIONS. They wait
# add.partitions.to.txn.retry.backoff.ms, 20 ms, and ask again; the third often waits twice. Seen on two busy cores, median: one leader
# 11 ms, three leaders 59 ms. A client that sends the old AddPartitionsToTxn (version 3) for all three first, and then the same Produce
# requests of version 12, took 27 ms with its additional round trip: the brokers' questions are answered at once.
# Now and then a broker does not ask again until it succeeds, but answers CONCURRENT_TRANSACTIONS to the Produce.
#
# Who is hurt: producers with short transactions over several brokers, for example Kafka Streams or connectors with exactly-once.
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
import socket, statistics, sys, time

from kafka.protocol.admin import CreateTopicsRequest
from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.parser import KafkaProtocol
from kafka.protocol.producer import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest, ProduceRequest
from kafka.record.default_records import DefaultRecordBatchBuilder

ports = [int(port) for port in sys.argv[1:]]
NAME, TOPIC, ROUNDS, BACKOFF_MS = "id", "t", 40, 20
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


places = CreateTopicsRequest.CreatableTopic.CreatableReplicaAssignment
assignments = [places(partition_index=n, broker_ids=[n + 1, (n + 1) % 3 + 1, (n + 2) % 3 + 1]) for n in range(3)]
topic = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=-1, replication_factor=-1, assignments=assignments, configs=[])
until(
    lambda: brokers[0].ask(CreateTopicsRequest(topics=[topic], timeout_ms=30000, validate_only=False), 5),
    lambda answer: answer.topics[0].error_code if answer.topics[0].error_code != 36 else 0,
)
time.sleep(3)
found = until(
    lambda: brokers[0].ask(FindCoordinatorRequest(key=NAME, key_type=1, coordinator_keys=[NAME]), 4),
    lambda answer: answer.coordinators[0].error_code,
)
coordinator = brokers[found.coordinators[0].node_id - 1]
first = until(
    lambda: coordinator.ask(InitProducerIdRequest(transactional_id=NAME, transaction_timeout_ms=60000, producer_id=-1, producer_epoch=-1), 5),
    lambda answer: answer.error_code,
)
pair = first.producer_id, first.producer_epoch


def produce(partition):
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=0, is_transactional=True, producer_id=pair[0], producer_epoch=pair[1], base_sequence=0, batch_size=1 << 16
    )
    builder.append(0, 1700000000000, b"key", b"value", [])
    data = ProduceRequest.TopicProduceData
    part = data.PartitionProduceData(index=partition, records=bytes(builder.build()))
    return ProduceRequest(transactional_id=NAME, acks=-1, timeout_ms=30000, topic_data=[data(name=TOPIC, partition_data=[part])])


def flight(partitions, add):
    """Milliseconds of the first requests of a transaction, which is committed then."""
    global pair
    began = time.monotonic()
    while add:
        added = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=TOPIC, partitions=list(partitions))
        answer = coordinator.ask(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=NAME,
                v3_and_below_producer_id=pair[0],
                v3_and_below_producer_epoch=pair[1],
                v3_and_below_topics=[added],
            ),
            3,
        )
        codes = {part.partition_error_code for told in answer.results_by_topic_v3_and_below for part in told.results_by_partition}
        add = codes == {CONCURRENT_TRANSACTIONS}
        assert add or codes == {0}, codes
    for partition in partitions:
        brokers[partition].send(produce(partition), 12)
    codes = {partition: brokers[partition].receive().responses[0].partition_responses[0].error_code for partition in partitions}
    took = 1000 * (time.monotonic() - began)
    done = coordinator.ask(EndTxnRequest(transactional_id=NAME, producer_id=pair[0], producer_epoch=pair[1], committed=not any(codes.values())), 5)
    assert done.error_code == 0, done
    pair = done.producer_id, done.producer_epoch
    # Until the coordinator is done with the transaction. It notices that its followers have the last change when somebody asks it anything.
    for _ in range(4):
        time.sleep(0.02)
        coordinator.ask(FindCoordinatorRequest(key=NAME, key_type=1, coordinator_keys=[NAME]), 4)
    return None if any(codes.values()) else took


kinds = {"one leader": ([0], False), "three leaders": ([0, 1, 2], False), "three leaders, AddPartitionsToTxn before": ([0, 1, 2], True)}
times = {name: [] for name in kinds}
for _ in range(ROUNDS):
    for name, (partitions, add) in kinds.items():
        took = flight(partitions, add)
        if took is not None:  # the brokers may also give up, and answer CONCURRENT_TRANSACTIONS
            times[name].append(took)
middle = {name: statistics.median(found) for name, found in times.items()}
for name, found in times.items():
    print(f"  {name}: median {middle[name]:.0f} ms, least {min(found):.0f}, greatest {max(found):.0f}; {len(found)} of {ROUNDS}")
one, three, added = middle.values()
raise SystemExit(0 if three >= BACKOFF_MS and three - one >= BACKOFF_MS / 2 and added < three else 1)
PYTHON

for release in 4.3.1 4.4.0; do
  echo "kafka_2.13 $release"
  start "$release"
  "$directory/venv/bin/python" "$directory/ask.py" "${ports[@]}"
  for broker in "${brokers[@]}"; do kill -9 "$broker"; wait "$broker" 2>/dev/null || true; done
  brokers=()
done
