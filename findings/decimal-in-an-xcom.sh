#!/usr/bin/env bash
# A Decimal that one Airflow task hands to the next one arrives as another number.
#
# One would guess: Airflow takes Decimal as one of its own types (a task may return it, and the next one gets a Decimal again), so it is the
# same number, or the task fails.
# What happens: a Decimal with digits behind the point goes through a float. 12345678901234567890.12 arrives as 1.2345678901234567E+19, and
# 1.10 as 1.1; nothing warns. Whole numbers arrive as they are, whatever their size.
# With: apache-airflow 3.3.2.
# Hurt: whoever returns sums of money, or exact positions and times, from a task: convert them to text.
set -euo pipefail

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
python3.11 -m venv "$directory/venv"
"$directory/venv/bin/pip" install -q --disable-pip-version-check uv==0.9.5
"$directory/venv/bin/uv" pip install --no-config -q --python "$directory/venv/bin/python" --exclude-newer 2026-11-20 apache-airflow==3.3.2
export PATH="$directory/venv/bin:$PATH" AIRFLOW_HOME="$directory/airflow" AIRFLOW__CORE__LOAD_EXAMPLES=False
mkdir -p "$AIRFLOW_HOME/dags"
cat >"$AIRFLOW_HOME/dags/look.py" <<'PYTHON'
from decimal import Decimal

from airflow.sdk import dag, task

SENT = [Decimal("12345678901234567890.12"), Decimal("1.10"), Decimal("12345678901234567890")]


@dag(schedule=None)
def look():
    @task
    def send():
        return SENT

    @task
    def receive(found):
        print("SEEN", *SENT, "arrive as", *found)

    receive(send())


look()
PYTHON
airflow db migrate >"$directory/migrate.txt" 2>&1 || { cat "$directory/migrate.txt"; exit 2; }
airflow dags test look >"$directory/run.txt" 2>&1 || true
seen=$(grep -ao "SEEN .*" "$directory/run.txt" | head -1 | sed 's/ *\x1b.*//') || { tail -30 "$directory/run.txt"; exit 2; }
echo "$seen"
case "$seen" in *"arrive as 1.2345678901234567E+19 1.1 12345678901234567890"*) ;; *) exit 1 ;; esac
