#!/usr/bin/env bash
# What OpenTelemetry's Python SDK says about the process that sends metrics, if nobody has configured a resource.
#
# One would guess: service.name ("unknown_service", or OTEL_SERVICE_NAME) and the SDK's own name and version, as in the years before. So two
# processes of one service send the same series.
#
# What happens (opentelemetry-sdk 1.45.2): a detector that is on by default adds service.instance.id, a random UUID for each process.
# OTEL_EXPERIMENTAL_RESOURCE_DETECTORS=otel does not end it; only a service.instance.id in OTEL_RESOURCE_ATTRIBUTES does.
#
# Who is hurt: commands that send once and end, such as cron jobs and tasks of Airflow. Behind a collector with a Prometheus exporter, each
# run begins new series, and those of older runs stay beside them until they expire: sums count everything several times.
#
# Needs bash, Python 3.11 with venv. Exits 0 while this is so, 1 once it has changed.
set -euo pipefail

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

python3.11 -m venv "$directory/venv"
"$directory/venv/bin/pip" install -q opentelemetry-sdk==1.45.2

cat > "$directory/ask.py" <<'PYTHON'
from opentelemetry.sdk.resources import Resource

print(Resource.create({"service.name": "job"}).attributes.get("service.instance.id"))
PYTHON

ask() { env -u OTEL_RESOURCE_ATTRIBUTES "$@" "$directory/venv/bin/python" "$directory/ask.py"; }
first=$(ask env)
second=$(ask env)
narrowed=$(ask env OTEL_EXPERIMENTAL_RESOURCE_DETECTORS=otel)
named=$(ask env OTEL_RESOURCE_ATTRIBUTES=service.instance.id=mine)
printf 'two processes: %s and %s\nwith detectors "otel" only: %s\nwith an instance in OTEL_RESOURCE_ATTRIBUTES: %s\n' "$first" "$second" "$narrowed" "$named"
[ "$first" != None ] && [ "$first" != "$second" ] && [ "$narrowed" != None ] && [ "$named" = mine ]
