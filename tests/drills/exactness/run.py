"""`make exactness SEED=…`: translated offsets of 500 groups beside MirrorMaker 2's. Exit code 1 when Ferry is wrong anywhere."""

from __future__ import annotations

import argparse
import platform
import random
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import confluent_kafka
from tests.drills.exactness.course import Course
from tests.drills.exactness.findings import find, start_consumers
from tests.drills.exactness.page import notes, table, write_section
from tests.drills.exactness.replicators import FERRY, MM2

from ferry import __version__
from ferry.sandbox.jars import KAFKA_VERSION

GROUPS = 500
# Consumers that are started at translated positions of each replicator, and at positions of the source.
STARTED = 40
PAGE = Path(__file__).parents[3] / "docs" / "evidence" / "exactness-beside-mm2.md"


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)  # noqa: T201 - the report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--groups", type=int, default=GROUPS)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    say(f"seed {options.seed}, {options.groups} groups")
    began = time.monotonic()
    with TemporaryDirectory(prefix="ferry-exactness-") as directory, Course(Path(directory), options.seed, options.groups, say) as course:
        ending = course.run()
        found = find(ending)
        targets = {FERRY: course.ferry_target, MM2: course.mm2_target}
        start_consumers(found, ending, course.source, targets, random.Random(options.seed), min(STARTED, options.groups // 4))
    minutes = (time.monotonic() - began) / 60
    versions = f"Ferry {__version__}, Kafka and MirrorMaker 2 {KAFKA_VERSION}, librdkafka {confluent_kafka.libversion()[0]}"
    made = f"{datetime.now(UTC):%Y-%m-%d}, {versions}, Python {platform.python_version()}; one broker a cluster; {minutes:.1f} minutes."
    lines = [f"`make exactness SEED={options.seed}`, {made}", "", *table(found), "", *notes(found)]
    print("\n".join(lines), flush=True)  # noqa: T201 - the report
    write_section(options.page, options.seed, lines)
    say(f"{len(found.problems)} problems; {options.page} is written")
    return 1 if found.problems else 0


if __name__ == "__main__":
    sys.exit(main())
