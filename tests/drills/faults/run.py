"""`make faults SEED=… ROUNDS=…`: a long series of kills. Exit code 1 when anything differs."""

from __future__ import annotations

import argparse
import random
import sys
import time

from tests.drills.faults.series import run_series


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)  # noqa: T201 - the report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--follow", action="store_true", help="runs that follow, with strikes during hand-overs")
    options = parser.parse_args()
    say(f"seed {options.seed}, {options.rounds} rounds")
    outcome = run_series(options.seed, options.rounds, say, follow=options.follow)
    for line in outcome.lines():
        say(line)
    return 0 if outcome.clean else 1


if __name__ == "__main__":
    sys.exit(main())
