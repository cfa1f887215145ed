// node clients.js write|read CLIENT FORMAT URL TOPIC [PAYLOAD HEADERS], payload and headers in base64: one order, by one client of a registry.
const { readFileSync } = require("node:fs");
const confluent = require("@confluentinc/schemaregistry");
const kafkajs = require("@kafkajs/confluent-schema-registry");

const [, , action, client, format, url, topic, payload, headers] = process.argv;
const order = { item: "the first item" };
const schema = {
  AVRO: JSON.stringify({ type: "record", name: "Order", fields: [{ name: "item", type: "string" }] }),
  JSON: JSON.stringify({
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "Order",
    type: "object",
    properties: { item: { type: "string" } },
  }),
}[format];

async function withKafkajs() {
  const registry = new kafkajs.SchemaRegistry({ host: url });
  if (action === "read") return registry.decode(Buffer.from(payload, "base64"));
  const { id } = await registry.register({ type: kafkajs.SchemaType[format], schema }, { subject: `${topic}-value` });
  return { payload: (await registry.encode(id, order)).toString("base64"), headers: {} };
}

// `place`: of the id.
async function withConfluent(place) {
  const registry = new confluent.SchemaRegistryClient({ baseURLs: [url] });
  const [Serializer, Deserializer] = {
    AVRO: [confluent.AvroSerializer, confluent.AvroDeserializer],
    JSON: [confluent.JsonSerializer, confluent.JsonDeserializer],
  }[format];
  if (action === "read") {
    const given = Object.fromEntries(Object.entries(JSON.parse(headers)).map(([name, value]) => [name, Buffer.from(value, "base64")]));
    return new Deserializer(registry, confluent.SerdeType.VALUE, {}).deserialize(topic, Buffer.from(payload, "base64"), given);
  }
  await registry.register(`${topic}-value`, { schema, schemaType: format });
  const written = {};
  const options = { useLatestVersion: true, ...(place === "header" && { schemaIdSerializer: confluent.HeaderSchemaIdSerializer }) };
  const data = await new Serializer(registry, confluent.SerdeType.VALUE, options).serialize(topic, order, written);
  return {
    payload: data.toString("base64"),
    headers: Object.fromEntries(Object.entries(written).map(([name, value]) => [name, Buffer.from(value).toString("base64")])),
  };
}

(client === "kafkajs" ? withKafkajs() : withConfluent(client.split("-")[1])).then(
  (found) => console.log(JSON.stringify(found)),
  (problem) => {
    console.error(problem);
    process.exitCode = 1;
  },
);
