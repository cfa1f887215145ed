"""Kafka's own Java code reads what Ferry forwards and what it writes, and not the LZ4 that Ferry encodes anew."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.wire.test_compression import FRAMES, LARGE

from ferry.sandbox.jars import broker_jars, java
from ferry.wire import compression

pytestmark = pytest.mark.brokers

CODECS = Path(__file__).parents[1] / "java" / "Codecs.java"


def read_by_java(payloads: Iterable[tuple[int, bytes]]) -> list[str]:
    lines = "".join(f"{compression.CODEC_NAMES[codec]}\t{payload.hex()}\n" for codec, payload in payloads)
    command = [java(), "-cp", f"{broker_jars()}/*", str(CODECS)]
    return subprocess.run(command, input=lines, capture_output=True, encoding="utf-8", check=True).stdout.splitlines()


def told(plain: bytes) -> str:
    return hashlib.sha256(plain).hexdigest()


def test_java_reads_what_counts_as_read_by_all() -> None:
    whole = {name: frame for name, (frame, _) in FRAMES.items()}
    found = dict(zip(whole, read_by_java((compression.LZ4, frame) for frame in whole.values()), strict=True))
    wanted = {name: told(b"" if name == "empty" else LARGE) for name, (_, read) in FRAMES.items() if read}
    assert {name: found[name] for name in wanted} == wanted
    assert found["linked"] == found["a frame to skip first"] == found["another version"] == found["no frame"] == ""
    assert found["two frames"] == told(LARGE), "Java stops behind the first frame, and says nothing"


def test_java_reads_several_members_of_the_other_codecs_and_all_that_ferry_writes(kafka: Any) -> None:
    parts = (b"one" * 5_000, LARGE, b"two")
    forwarded = [(codec, b"".join(kafka.squeeze(codec, part) for part in parts)) for codec in (1, 2, 4)]
    own = [(codec, bytes(compression.compress(codec, b"".join(parts)))) for codec in range(1, 5)]
    assert read_by_java(forwarded + own) == [told(b"".join(parts))] * 7
