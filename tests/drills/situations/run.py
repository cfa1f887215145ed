"""`make situations`: how Ferry looks to somebody who was called out of bed, in sixteen situations on real clusters and a real Airflow.

Each situation leaves its files in .ferry/situations: the first screen of the page (light, dark, and on a phone), the first lines of
`ferry status`, Airflow's page of the last run and what the run's tasks say, and the alerts. A person reads them: is the flow healthy, how
far behind is it, what is missing or lost, why, and what is to do now?
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from demo.airflow_api import AirflowApi
from tests.both_clusters import FOREVER, both_clusters
from tests.drills.situations.keeping import Keeper, logged_in
from tests.drills.situations.plays import SITUATIONS, Situation
from tests.drills.situations.services import SituationsAirflow
from tests.drills.situations.stage import Stage
from tests.page.browsing import chromium
from tests.permissions.landscape import USERS

RESULTS = Path(".ferry") / "situations"
# Airflow takes no config without a flow.
FIRST_FLOW = "clusters = A, B\nA.bootstrap.servers = 127.0.0.1:1\nB.bootstrap.servers = 127.0.0.1:2\nA->B.enabled = true\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.drills.situations.run", description=__doc__)
    names = [situation.name for situation in SITUATIONS]
    parser.add_argument("--only", nargs="*", choices=names, default=names, help="play only these")
    only = parser.parse_args().only
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix="ferry-situations-") as scratch:
        _play(Path(scratch), [(number, one) for number, one in enumerate(SITUATIONS, 1) if one.name in only])


def _play(scratch: Path, chosen: list[tuple[int, Situation]]) -> None:
    results, config = RESULTS.resolve(), scratch / "mm2.properties"
    if len(chosen) == len(SITUATIONS):
        shutil.rmtree(results, ignore_errors=True)
    config.write_text(FIRST_FLOW, encoding="latin-1")
    airflow = SituationsAirflow(scratch / "airflow", config)
    try:
        airflow.start()
        with AirflowApi(airflow.url, airflow.user, airflow.password) as api, chromium() as browser:
            keeper = Keeper(browser, results, logged_in(browser, airflow.url, airflow.user, airflow.password))
            for number, situation in chosen:
                began = time.monotonic()
                directory = scratch / situation.name
                settings = {"users": USERS, "authorizer": True} if situation.guarded else {}
                with both_clusters(directory, FOREVER, **settings) as (source, target):
                    stage = Stage(number, directory, config, airflow, api, source, target, situation.lines)
                    stage.begin()
                    situation.play(stage, keeper)
                print(f"{situation.name}: {time.monotonic() - began:.0f} s", flush=True)  # noqa: T201 - the report
    finally:
        airflow.stop()
    print(f"see {results}")  # noqa: T201 - the report


if __name__ == "__main__":
    main()
