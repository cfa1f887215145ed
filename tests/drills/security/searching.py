"""Looks for secrets, in whatever form they may have got somewhere: text, bytes, processes, files, topics."""

from __future__ import annotations

import base64
import json
import os
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, quote_plus

import psutil
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
from tests.waiting import NEVER_SECONDS

PAUSE_SECONDS = 0.05
# Larger files are archives of classes.
LARGEST_FILE_BYTES = 32 << 20


def forms(secret: str) -> set[bytes]:
    """The secret as it is, quoted for URLs, JSON and JAAS, in hexadecimal, and in base64 wherever it begins in a longer text."""
    raw = secret.encode()
    found = {raw, quote(secret, safe="").encode(), quote_plus(secret).encode(), json.dumps(secret)[1:-1].encode(), raw.hex().encode()}
    found.add(json.dumps(json.dumps(secret)[1:-1])[1:-1].encode())
    found.add(repr(secret)[1:-1].encode())
    for shift in range(3):
        # The first and last characters depend on the neighbours.
        encoded = base64.b64encode(b"\0" * shift + raw).rstrip(b"=")
        core = encoded[(shift * 8 + 5) // 6 + (shift > 0) : -1]
        found |= {core, core.replace(b"+", b"-").replace(b"/", b"_")}
    return found


@dataclass
class Search:
    """`secrets` by name; `found` tells where which was seen, and never the secret itself."""

    secrets: Mapping[str, str]
    found: set[str] = field(default_factory=set)
    looked_at: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._forms = {name: forms(secret) for name, secret in self.secrets.items()}

    def look(self, where: str, content: bytes | str, *, leave: Iterable[str] = ()) -> None:
        """Search `content`; secrets named in `leave` may be there."""
        data = content.encode() if isinstance(content, str) else content
        kind = where.split(":", maxsplit=1)[0]
        self.looked_at[kind] = self.looked_at.get(kind, 0) + len(data)
        for name, wanted in self._forms.items():
            if name not in leave and any(form in data for form in wanted):
                self.found.add(f"{name} in {where}")

    def files(self, kind: str, *places: Path) -> None:
        """Every file below `places`; those that vanish meanwhile are left."""
        for place in places:
            for path in [place, *(Path(folder, name) for folder, _, names in os.walk(place) for name in names)]:
                try:
                    if path.is_file() and path.stat().st_size <= LARGEST_FILE_BYTES:
                        self.look(f"{kind}: {path.name}, mode {path.stat().st_mode & 0o777:o}", path.read_bytes())
                except OSError:
                    continue

    def topics(self, settings: Mapping[str, object], beginning: str) -> None:
        """Every record, aborted ones too, of topics that begin so."""
        consumer = Consumer({**settings, "group.id": "search", "isolation.level": "read_uncommitted", "enable.partition.eof": True})
        try:
            topics = {name: topic for name, topic in consumer.list_topics(timeout=20).topics.items() if name.startswith(beginning)}
            left = {(name, number) for name, topic in topics.items() for number in topic.partitions}
            consumer.assign([TopicPartition(name, number, OFFSET_BEGINNING) for name, number in left])
            deadline = time.monotonic() + NEVER_SECONDS
            while left:
                assert time.monotonic() < deadline, left
                for record in consumer.consume(1_000, 0.2):
                    error = record.error()
                    if error is None:
                        self.look(f"topic: {record.topic()}", (record.key() or b"") + (record.value() or b""))
                    elif error.code() == KafkaError._PARTITION_EOF:
                        left.discard((record.topic() or "", record.partition() or 0))
        finally:
            consumer.close()


class Watch:
    """While the context is open: arguments and environment of every process below `pid`, and files below `places`, again and again."""

    def __init__(self, search: Search, pid: int, *places: Path, leave: Iterable[str] = ()) -> None:
        self._search, self._pid, self._places, self._leave = search, pid, places, frozenset(leave)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.processes: set[str] = set()

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                parent = psutil.Process(self._pid)
                processes = [parent, *parent.children(recursive=True)]
            except psutil.Error:
                processes = []
            for process in processes:
                self._one(process)
            self._search.files("temporary file", *self._places)
            time.sleep(PAUSE_SECONDS)

    def _one(self, process: psutil.Process) -> None:
        try:
            name = process.name()
            self._search.look(f"arguments: {name}", Path(f"/proc/{process.pid}/cmdline").read_bytes())
            self._search.look(f"environment: {name}", Path(f"/proc/{process.pid}/environ").read_bytes(), leave=self._leave)
            self.processes.add(name)
        except (psutil.Error, OSError):
            return
