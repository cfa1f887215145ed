#!/usr/bin/env bash
# OpenLineage's Python client sends a Decimal as the text "<<non-serializable: Decimal>>", and NaN as a word that JSON does not have.
#
# One would guess: what the client cannot write as JSON is an error of emit(), as it is of json.dumps; or a number arrives as a number.
# What happens: emit() succeeds. A sum that a database gave as Decimal, a count of numpy's type int32 and a decimal row count arrive as a text
# in place of the number. A float that is NaN, as pandas gives for a column without values, makes the whole event invalid JSON; strict
# parsers refuse it.
# With: openlineage-python 1.54.0, numpy 2.3.5.
# Hurt: whoever sends metrics that come from a database or a data frame. Nothing fails where the value is made: a server stores a text as the
# count, or refuses the event with everything else in it.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check openlineage-python==1.54.0 numpy==2.3.5

cat >"$work/look.py" <<'PYTHON'
import decimal
import http.server
import json
import math
import sys
import threading
import uuid

import numpy
from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset, Job, Run, RunEvent, RunState
from openlineage.client.facet_v2 import data_quality_metrics_input_dataset as quality
from openlineage.client.transport.http import HttpConfig, HttpTransport

bodies = []


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        bodies.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(200)
        self.end_headers()

    def log_message(self, *words):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = OpenLineageClient(transport=HttpTransport(HttpConfig(url=f"http://127.0.0.1:{server.server_port}")))


def received(rows, **metrics):
    """The body that the server gets for an event with these metrics."""
    facet = quality.DataQualityMetricsInputDatasetFacet(rowCount=rows, columnMetrics={"price": quality.ColumnMetrics(**metrics)})
    inputs = [InputDataset("postgres://db", "orders", inputFacets={"dataQualityMetrics": facet})]
    run, job = Run(str(uuid.uuid4())), Job("namespace", "job")
    client.emit(RunEvent(eventTime="2026-01-01T00:00:00Z", eventType=RunState.COMPLETE, run=run, job=job, inputs=inputs))
    return bodies[-1]


def strict(body):
    """The metrics of a body, or the word that JSON does not have."""

    def refuse(word):
        raise ValueError(word)

    try:
        facet = json.loads(body, parse_constant=refuse)["inputs"][0]["inputFacets"]["dataQualityMetrics"]
    except ValueError as problem:
        return str(problem)
    price = facet["columnMetrics"]["price"]
    return facet["rowCount"], price["sum"], price["nullCount"]


seen = {
    "int and float": strict(received(5, sum=7.5, nullCount=0)),
    "Decimal and int32": strict(received(decimal.Decimal(5), sum=decimal.Decimal("7.5"), nullCount=numpy.int32(0))),
    "NaN": strict(received(5, sum=math.nan, nullCount=0)),
}
for what, found in seen.items():
    print(f"{what}: {found}")
lost = "<<non-serializable: Decimal>>"
expected = [(5, 7.5, 0), (lost, lost, "<<non-serializable: int32>>"), "NaN"]
sys.exit(list(seen.values()) != expected)
PYTHON
"$work/venv/bin/python" "$work/look.py"
