#!/usr/bin/env bash
# A default in the reader's Avro schema arrives in Python as the text or number that stands in the schema: str for bytes and decimals, int for times.
#
# One would guess: a reader's default is a value of the field's type. Old records, which lack the field, and new ones that were written with
# that very value, read the same, as they do in Java.
# What happens: the same deserializer gives Decimal, datetime and bytes for a record that has the fields, and str, int and str for one that
# lacks them: the default 0.01 is the text "\u0001", its unscaled bytes. On the writer's side, a missing decimal or bytes is not filled with
# its default but refused; a missing time is filled, and reads as datetime.
# With: confluent-kafka 2.16.1, fastavro 1.13.1, Avro for Java 1.12.1.
# Hurt: whoever adds a field with a default, and tests with new records only: old ones in the topic fail in arithmetic and comparisons, or are
# stored as text.
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
import org.apache.avro.Conversions;
import org.apache.avro.Schema;
import org.apache.avro.data.TimeConversions;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;

public class Read {
  public static void main(String[] words) throws Exception {
    var data = new GenericData();
    data.addLogicalTypeConversion(new Conversions.DecimalConversion());
    data.addLogicalTypeConversion(new TimeConversions.TimestampMillisConversion());
    var reader = new Schema.Parser().parse(words[0]);
    for (int i = 1; i < words.length; i += 2) {
      var decoder = DecoderFactory.get().binaryDecoder(HexFormat.of().parseHex(words[i + 1]), null);
      var record = new GenericDatumReader<GenericRecord>(new Schema.Parser().parse(words[i]), reader, data).read(null, decoder);
      System.out.println(record.get("price").getClass().getSimpleName() + " " + record.get("price")
          + ", " + record.get("seen").getClass().getSimpleName() + " " + record.get("seen") + ", bytes " + record.get("raw").toString().startsWith("java.nio"));
    }
  }
}
JAVA

cat >"$work/look.py" <<'PYTHON'
import datetime
import decimal
import json
import subprocess
import sys

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

work = sys.argv[1]
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
TIME = {"type": "long", "logicalType": "timestamp-millis"}
ADDED = [
    {"name": "price", "type": MONEY, "default": "\u0001"},
    {"name": "seen", "type": TIME, "default": 0},
    {"name": "raw", "type": "bytes", "default": "\u00ff"},
]


def order(added):
    return json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}, *added]})


registry = SchemaRegistryClient.new_client({"url": "mock://"})
context = SerializationContext("t", MessageField.VALUE)
values = {"price": decimal.Decimal("0.01"), "seen": datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc), "raw": b"\xff"}
old = AvroSerializer(registry, order([]))({"id": 7}, context)
new = AvroSerializer(registry, order(ADDED))({"id": 7, **values}, context)
read = AvroDeserializer(registry, order(ADDED))
seen = {"old": read(old, context), "new": read(new, context)}
for which, found in seen.items():
    print(f"Python, {which} record: {found}")
command = ["java", "-cp", f"{work}/jars/*", f"{work}/Read.java", order(ADDED), order([]), old[5:].hex(), order(ADDED), new[5:].hex()]
java = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
print("Java, old record:", java[0])
print("Java, new record:", java[1])
missing = {}
for field in ADDED:
    try:
        alone = AvroDeserializer(registry)(AvroSerializer(registry, order([field]))({"id": 7}, context), context)
        missing[field["name"]] = alone[field["name"]]
    except Exception as problem:
        missing[field["name"]] = f"refused with {type(problem).__name__}"
print("Python writes a record without the field:", missing)
as_told = seen["new"] == {"id": 7, **values} and seen["old"] == {"id": 7, "price": "\u0001", "seen": 0, "raw": "\u00ff"}
refused = all(str(missing[name]).startswith("refused") for name in ("price", "raw")) and missing["seen"] == values["seen"]
sys.exit(not (as_told and refused and java[0] == java[1] == "BigDecimal 0.01, Instant 1970-01-01T00:00:00Z, bytes true"))
PYTHON
"$work/venv/bin/python" "$work/look.py" "$work"
