#!/usr/bin/env bash
# One would guess: a stream of several members is one stream for every codec. RFC 1952 says so of gzip, RFC 8878 of zstd, the LZ4 frame
# format of LZ4, and snappy-java reads streams in a row; where a reader does not take a second frame, it says so.
#
# What happens: Kafka's own code (kafka-clients 4.3.1, in brokers and Java clients alike) reads all members of gzip, zstd and snappy-java.
# Of LZ4 it reads the first frame, then the stream ends: no error, as if the second frame were not there. Only the count of records in a
# batch's header betrays it. Python's cramjam does the same up to 2.13.0, and reads all frames from 2.14.0 on. Kafka also refuses frames with
# linked blocks, which cramjam writes by default: that refusal is loud.
#
# Who is hurt: whoever reads or writes LZ4 in pieces (one frame for each flush) by a broker that does not look into batches, and tests with
# one version of a library: the records behind the first frame are missing, or there are all of them.
#
# Needs bash, Python 3.11 with venv, Java 17, Maven. Listens on nothing.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat > pom.xml <<'POM'
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-clients</artifactId><version>4.3.1</version></dependency>
  </dependencies>
</project>
POM
mvn -q dependency:copy-dependencies -DoutputDirectory=jars
python3 -m venv venv
venv/bin/pip -q install lz4==4.4.4
for version in 2.13.0 2.14.0; do
    venv/bin/pip -q install --target "cramjam-$version" "cramjam==$version"
done

cat > Read.java <<'JAVA'
import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.utils.BufferSupplier;

public class Read {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t");
            ByteBuffer payload = ByteBuffer.wrap(HexFormat.of().parseHex(words[2]));
            String found;
            try (InputStream plain = Compression.of(words[1]).build().wrapForInput(payload, (byte) 2, BufferSupplier.NO_CACHING)) {
                found = new String(plain.readAllBytes());
            } catch (Exception refusal) {
                found = "refused";
            }
            System.out.println(words[0] + "\t" + found);
        }
    }
}
JAVA

cat > write.py <<'PYTHON'
import gzip
import struct

import cramjam
import lz4.frame

XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


def snappy(data):
    block = bytes(cramjam.snappy.compress_raw(data))
    return XERIAL + struct.pack(">i", len(block)) + block


def independent(data):
    return lz4.frame.compress(data, block_linked=False)


for codec, compress in (("gzip", gzip.compress), ("snappy", snappy), ("zstd", lambda data: bytes(cramjam.zstd.compress(data))), ("lz4", independent)):
    print(f"{codec} in two members", codec, (compress(b"one") + compress(b"two")).hex(), sep="\t")
print("lz4 by default of cramjam", "lz4", bytes(cramjam.lz4.compress(b"onetwo")).hex(), sep="\t")
PYTHON
cat > read.py <<'PYTHON'
import sys

import cramjam
import lz4.frame

frame = lz4.frame.compress(b"one", block_linked=False), lz4.frame.compress(b"two", block_linked=False)
print(f"cramjam {sys.argv[1]}, lz4 in two members", bytes(cramjam.lz4.decompress(b"".join(frame))).decode(), sep="\t")
PYTHON

PYTHONPATH=cramjam-2.14.0 venv/bin/python write.py > payloads
java -cp "jars/*" Read.java < payloads 2> /dev/null | tee found
for version in 2.13.0 2.14.0; do
    PYTHONPATH="cramjam-$version" venv/bin/python read.py "$version" | tee -a found
done

cat > wanted <<'WANTED'
gzip in two members	onetwo
snappy in two members	onetwo
zstd in two members	onetwo
lz4 in two members	one
lz4 by default of cramjam	refused
cramjam 2.13.0, lz4 in two members	one
cramjam 2.14.0, lz4 in two members	onetwo
WANTED
if diff wanted found; then
    echo "as described: of two LZ4 frames Kafka's Java code reads the first, and says nothing"
else
    echo "this has changed: lines with > are what happens now" >&2
    exit 1
fi
