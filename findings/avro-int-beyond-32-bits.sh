#!/usr/bin/env bash
# confluent-kafka for Python writes 3,000,000,000 into a field of the Avro type "int", and Java's Avro reads 852,516,352.
#
# One would guess: "int" has 32 bits, so the serializer refuses the number, as Java's does; or at least the reader refuses it.
# What happens: outside of unions nothing is checked on writing (fastavro, below the serializer). Python reads the number back as it was
# written; Java's decoder keeps 32 bits of what it reads, without an error. None in a boolean field is written as false, and the word
# "false" as true; None in an "int" is refused.
# With: confluent-kafka 2.16.1, fastavro 1.13.1, Avro for Java 1.12.1.
# Hurt: ids, counters and times that outgrow 32 bits: the producer and tests in Python see nothing, applications in Java count with another
# number.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check "confluent-kafka[avro,schemaregistry]==2.16.1" fastavro==1.13.1

cat >"$work/pom.xml" <<'XML'
<project><modelVersion>4.0.0</modelVersion><groupId>finding</groupId><artifactId>avro</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.avro</groupId><artifactId>avro</artifactId><version>1.12.1</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version></dependency></dependencies>
</project>
XML
mvn -q -f "$work/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/jars" >"$work/mvn.txt" 2>&1 || { cat "$work/mvn.txt"; exit 2; }

cat >"$work/Read.java" <<'JAVA'
import java.util.HexFormat;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.DecoderFactory;

public class Read {
  public static void main(String[] words) throws Exception {
    var schema = new Schema.Parser().parse(words[0]);
    for (int i = 1; i < words.length; i++) {
      var decoder = DecoderFactory.get().binaryDecoder(HexFormat.of().parseHex(words[i]), null);
      System.out.println(new GenericDatumReader<Object>(schema).read(null, decoder));
    }
  }
}
JAVA

cat >"$work/look.py" <<'PYTHON'
import json
import subprocess
import sys

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

work = sys.argv[1]
SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}, {"name": "paid", "type": "boolean"}]}
registry = SchemaRegistryClient.new_client({"url": "mock://"})
context = SerializationContext("t", MessageField.VALUE)
write, read = AvroSerializer(registry, json.dumps(SCHEMA)), AvroDeserializer(registry)


def java(*records):
    command = ["java", "-cp", f"{work}/jars/*", f"{work}/Read.java", json.dumps(SCHEMA), *(one[5:].hex() for one in records)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


orders = [{"id": 3_000_000_000, "paid": True}, {"id": 7, "paid": None}, {"id": 7, "paid": "false"}]
records = [write(order, context) for order in orders]
for order, record, one in zip(orders, records, java(*records)):
    print(f"{order}: Python reads {read(record, context)}, Java {one}")
try:
    write({"id": None, "paid": True}, context)
    missing = "written"
except Exception as problem:
    missing = type(problem).__name__
print(f"None as id: {missing}")
as_told = java(*records) == [{"id": 852_516_352, "paid": True}, {"id": 7, "paid": False}, {"id": 7, "paid": True}]
sys.exit(not (as_told and read(records[0], context)["id"] == 3_000_000_000 and missing != "written"))
PYTHON
"$work/venv/bin/python" "$work/look.py" "$work"
