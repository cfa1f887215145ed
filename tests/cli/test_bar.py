"""How far a copy or a verify is, at a real terminal and elsewhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.terminal import Terminal
from tests.conftest import Lab

from ferry.copying.committed import Progress
from ferry.ending import INTERRUPTED

pytestmark = pytest.mark.brokers

FERRY = Path(sys.executable).with_name("ferry")
LONGEST = f"{'a' * 120}.{'b' * 128}-17"
TEXTS = [Progress(done, 3_000_000 - done, ((LONGEST, 1_000), ("orders-3", 900)), 1e5, 4e7).text for done in (100_000, 1_500_000)]
# Plays a copy, then shows its result. With an argument, it does so in the background.
PLAY = f"""
import os, sys, time
from ferry.cli.bar import drawn
if sys.argv[1:] and (child := os.fork()):
    os.waitpid(child, 0)
    sys.exit()
if sys.argv[1:]:
    os.setpgid(0, 0)
with drawn("nothing is copied yet", as_json=False) as say:
    time.sleep(0.3)
    say("6 lanes, 3,000,000 offsets to go")
    for text in {TEXTS!r}:
        say(text)
        time.sleep(0.3)
    print("of a library", file=sys.stderr)
    say("trying 2 lanes [again]")
    say("following: 7 records")
    time.sleep(0.3)
print("the report")
"""


@pytest.mark.parametrize("columns", [180, 80])
def test_a_terminal_shows_a_bar_and_the_words_of_the_log(columns: int) -> None:
    with Terminal([sys.executable, "-c", PLAY], columns=columns) as terminal:
        terminal.until("nothing is copied yet")
        terminal.until(re.escape("6 lanes, 3,000,000 offsets to go"))
        place = terminal.until(r"━+ 1,500,000 of 3,000,000 records \(50%\), 40\.0 MB/s")
        place = terminal.until(r"of a library[\s\S]*trying 2 lanes \[again\]", after=place)
        terminal.until("━+ following: 7 records", after=place)
        assert terminal.ended() == 0
        assert terminal.restored
        words = set(terminal.shown.split())
        assert f"{'a' * 19}…{'b' * 17}-17" in words, "no name is broken"
        assert not any(re.fullmatch("a{2,}|b{2,}-17|orders-", word) for word in words), words
        assert terminal.raw.rstrip().endswith("the report")
        assert "━" not in terminal.raw[terminal.raw.rindex("\x1b[2K") :], "the bar is gone"


def test_a_command_in_the_background_draws_nothing_over_what_is_typed() -> None:
    with Terminal([sys.executable, "-c", PLAY, "background"]) as terminal:
        assert terminal.ended() == 0
        assert "━" not in terminal.shown
        assert "\x1b" not in terminal.raw
        assert terminal.raw.splitlines()[:2] == ["6 lanes, 3,000,000 offsets to go", TEXTS[0]]


def test_a_log_has_lines() -> None:
    done = subprocess.run([sys.executable, "-c", PLAY], capture_output=True, text=True, check=True)
    lines = ["6 lanes, 3,000,000 offsets to go", *TEXTS, "of a library", "trying 2 lanes [again]", "following: 7 records"]
    assert (done.stdout, done.stderr.splitlines()) == ("the report\n", lines)


@pytest.mark.long
def test_a_run_and_a_verify_at_a_terminal(lab: Lab) -> None:
    """So slow that there is something to see."""
    topic = lab.topic(lab.source)
    path = lab.config(f"A->B.topics = {topic}", "A->B.ferry.max.rate.mb = 1", "A->B.ferry.transaction.seconds = 1", *lab.copy_only)
    flow = next(line.split(".enabled")[0] for line in path.read_text().splitlines() if ".enabled" in line and "->" in line)
    lab.produce(lab.source, topic, [(0, None, b"v" * 10_000)] * 600)
    with Terminal([FERRY, "run", path, "--flow", flow, "--master", "inline"]) as terminal:
        terminal.until("nothing is copied yet")
        place = terminal.until("1 lane, 600 offsets to go")
        place = terminal.until(rf"━+ \d+ of 600 records \(\d+%\).*; most left: {topic}-0 \(\d+\)", after=place)
        terminal.until(r"600 records, [\d,]+ bytes in \d+\.\d s \(\d\.\d MB/s, CPU \d+\.\d s\), 1 partition", after=place)
        assert terminal.ended() == 0
        assert terminal.restored
    with Terminal([FERRY, "verify", path, "--flow", flow]) as terminal:
        terminal.until("nothing is compared yet")
        assert terminal.ended() == 0
    with Terminal([FERRY, "run", path, "--flow", flow, "--master", "inline", "--follow", "5m"]) as terminal:
        terminal.until("━+ following: 0 records")
        lab.produce(lab.source, topic, [(0, None, b"v")])
        said = (
            r"━+ following: 1 record(, \d+\.\d MB/s)?; records are on the target after (\d+\.\d|less than 0\.1) s; the newest"
            r" records were committed (\d+\.\d|less than 0\.1) s ago"
        )
        terminal.until(said.replace(" ", r"\s+"))  # a narrow terminal has it in two lines
        terminal.press("\x03")
        assert terminal.ended() == INTERRUPTED
        assert terminal.restored
    lab.produce(lab.source, topic, [(0, None, b"v" * 10_000)] * 300)
    with Terminal([FERRY, "run", path, "--flow", flow, "--master", "inline", "--json"]) as terminal:
        assert terminal.ended() == 0
        assert "━" not in terminal.shown
        document = terminal.shown[terminal.shown.index("{") : terminal.shown.rindex("}") + 1]
        assert json.loads(document)["totals"]["records"] == 300
