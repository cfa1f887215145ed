#!/usr/bin/env bash
# A user's credentials for SCRAM-SHA-256 and SCRAM-SHA-512 cannot be set, or exchanged, in one request.
#
# One would guess: a user may have both, and a request carries a list of changes, so one call sets both, or sets one and deletes the other; only
# the same mechanism twice is refused.
# What happens: a user may appear once in a request. Both at once are refused with DUPLICATE_RESOURCE, and neither is set, while another user
# in the same request gets what was asked for. The same goes for setting SHA-512 and deleting SHA-256. One call after the other works,
# and both are listed then.
# With: brokers 3.9.1 and 4.4.0, confluent-kafka 2.16.1.
# Hurt: whoever moves users to another cluster, or to the stronger mechanism, in one call: some are done, some are not; and there is a moment
# with both, or with none.
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

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check confluent-kafka==2.16.1

cat >"$work/look.py" <<'PYTHON'
import sys
import time

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

servers, release = sys.argv[1:]
BOTH = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512


def created(admin, name, **config):
    """A topic of one partition; waits for the broker, which may still be starting."""
    deadline = time.monotonic() + 120
    while True:
        try:
            admin.create_topics([NewTopic(name, 1, 1, config=config)], request_timeout=10)[name].result(20)
            return name
        except KafkaException as problem:
            if problem.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return name
            if time.monotonic() > deadline:
                raise
            time.sleep(1)


def upsertion(user, mechanism):
    return UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), b"of-this-script")


def altered(*changes):
    """The error of each user, or none."""
    errors = {}
    for user, future in admin.alter_user_scram_credentials(list(changes)).items():
        try:
            future.result(60)
            errors[user] = None
        except KafkaException as problem:
            errors[user] = problem.args[0].name()
    return errors


def mechanisms(user):
    try:
        described = admin.describe_user_scram_credentials([user])[user].result(60)
    except KafkaException:
        return []
    return sorted(one.mechanism.name for one in described.scram_credential_infos)


admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
created(admin, "t")
at_once = altered(*(upsertion("a", mechanism) for mechanism in BOTH), upsertion("b", BOTH[0]))
time.sleep(2)
after = mechanisms("a"), mechanisms("b")
one_by_one = [altered(upsertion("a", mechanism))["a"] for mechanism in BOTH]
time.sleep(2)
both = mechanisms("a")
exchanged = altered(upsertion("b", BOTH[1]), UserScramCredentialDeletion("b", BOTH[0]))
time.sleep(2)
last = mechanisms("b")
print(f"{release}: both for a, and one for b: {at_once}, then a and b have {after}")
print(f"  one after the other: {one_by_one}, then a has {both}; exchanged: {exchanged}, then b has {last}")
first, second = "SCRAM_SHA_256", "SCRAM_SHA_512"
right = at_once == {"a": "DUPLICATE_RESOURCE", "b": None} and after == ([], [first])
right = right and one_by_one == [None, None] and both == [first, second]
sys.exit(not (right and exchanged == {"b": "DUPLICATE_RESOURCE"} and last == [first]))
PYTHON

answer=0
for release in 3.9.1 4.4.0; do
  start_kafka "$release"
  "$work/venv/bin/python" "$work/look.py" "$servers" "$release" || answer=1
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
done
exit "$answer"
