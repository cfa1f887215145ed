#!/usr/bin/env bash
# A whole number in an Avro union is written by Python as the first type that a number fits, also as double, and loses digits; Java takes "long".
#
# One would guess: for a union of double and long an int is written as long and a float as double, whatever stands first, as Java's writer
# does with Long and Double. And a dict in a union of a map and a record is the record whose fields it has.
# What happens: the first branch that takes a number wins, and double takes an int. 9007199254740993 in ["null", "double", "long"] is written as
# double and read as 9007199254740992.0; with long before double it is exact. A dict with just the record's field is written as a map,
# whether map or record stands first, and Java reads a map.
# With: confluent-kafka 2.16.1, fastavro 1.13.1, Avro for Java 1.12.1.
# Hurt: events with values of any type, such as ids and amounts beside measurements: ids beyond 2^53 change, and readers
# in Java that expect the record's class get a map.
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

cat >"$work/Both.java" <<'JAVA'
import java.io.ByteArrayOutputStream;
import java.util.HexFormat;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;

// Of each schema and record: what Java reads. Of a schema and "long N": what Java reads after it has written N itself.
public class Both {
  public static void main(String[] words) throws Exception {
    for (int i = 0; i < words.length; i += 2) {
      var schema = new Schema.Parser().parse(words[i]);
      var bytes = new ByteArrayOutputStream();
      if (words[i + 1].startsWith("long ")) {
        var encoder = EncoderFactory.get().directBinaryEncoder(bytes, null);
        new GenericDatumWriter<Object>(schema).write(Long.valueOf(words[i + 1].substring(5)), encoder);
      } else {
        bytes.write(HexFormat.of().parseHex(words[i + 1]));
      }
      var decoder = DecoderFactory.get().binaryDecoder(bytes.toByteArray(), null);
      var read = new GenericDatumReader<Object>(schema).read(null, decoder);
      System.out.println(read.getClass().getSimpleName() + " " + read);
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
NUMBER = 9_007_199_254_740_993
PRICE = {"type": "record", "name": "Price", "fields": [{"name": "cents", "type": "int"}]}
MAP = {"type": "map", "values": "int"}
registry = SchemaRegistryClient.new_client({"url": "mock://"})


def written(schema, value):
    """The record that Python writes, and the value that Python reads from it."""
    context = SerializationContext(f"t{abs(hash(json.dumps(schema)))}", MessageField.VALUE)
    record = AvroSerializer(registry, json.dumps(schema))(value, context)
    return record[5:].hex(), AvroDeserializer(registry)(record, context)


tried = [(["null", "double", "long"], NUMBER), (["null", "long", "double"], NUMBER), ([MAP, PRICE], {"cents": 5}), ([PRICE, MAP], {"cents": 5})]
python = [written(schema, value) for schema, value in tried]
words = [word for (schema, _), (record, _) in zip(tried, python) for word in (json.dumps(schema), record)]
words += [json.dumps(tried[0][0]), f"long {NUMBER}"]
done = subprocess.run(["java", "-cp", f"{work}/jars/*", f"{work}/Both.java", *words], check=True, stdout=subprocess.PIPE, text=True)
java = done.stdout.splitlines()
for (schema, value), (_, found), other in zip(tried, python, java):
    names = [one if isinstance(one, str) else one["type"] for one in schema]
    print(f"{value} in {names}: Python reads its own record as {found}, Java reads {other}")
print(f"Java reads what it has written itself for {tried[0][0]}: {java[-1]}")
exact = f"Long {NUMBER}"
as_told = [java[0], java[1], java[4]] == ["Double 9.007199254740992E15", exact, exact]
sys.exit(not (as_told and java[2].startswith("HashMap") and java[3].startswith("HashMap") and python[0][1] == 9_007_199_254_740_992.0))
PYTHON
"$work/venv/bin/python" "$work/look.py" "$work"
