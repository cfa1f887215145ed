"""What a Spark user writes to copy a topic: Spark's own Kafka source and sink. Runs under spark-submit and knows nothing of Ferry.

The argument is JSON: `source`, `target` (bootstrap servers), `topic`, `remote`, `checkpoint`, `options` of the source, `columns` beside key
and value, `realtime` (copy what arrives, in real-time mode, instead of what is there), `hiccup` (a file: while it does not exist, the task
that meets HICCUP makes it and fails, as a worker's machine may).
"""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.types import BinaryType

HICCUP = b"hiccup"


def main() -> None:
    how = json.loads(sys.argv[1])
    session = SparkSession.builder.appName("copy").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    source = {"kafka.bootstrap.servers": how["source"], "subscribe": how["topic"], "startingOffsets": "earliest", **how["options"]}
    records = session.readStream.format("kafka").options(**source).load()

    def passed(value: bytes) -> bytes:
        if bytes(value or b"").startswith(HICCUP) and not Path(how["hiccup"]).exists():
            Path(how["hiccup"]).touch()
            raise OSError("this worker has a hiccup")
        return value

    columns = ["key", "value", *how["columns"]]
    if how["hiccup"]:
        records = records.withColumn("value", udf(passed, BinaryType())("value"))
    sink = {"kafka.bootstrap.servers": how["target"], "topic": how["remote"], "checkpointLocation": how["checkpoint"]}
    copies = records.select(*columns).writeStream.format("kafka").options(**sink)
    copies = copies.outputMode("update").trigger(realTime="5 minutes") if how["realtime"] else copies.trigger(availableNow=True)
    copies.start().awaitTermination()


if __name__ == "__main__":
    main()
