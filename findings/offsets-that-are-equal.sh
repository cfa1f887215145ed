#!/usr/bin/env bash
# Two TopicPartition of confluent-kafka for Python with different offsets are equal: a test that compares committed offsets can never fail.
#
# One would guess: the object carries an offset, and its text shows it, so == compares it; or, as it has no ==, two objects are never equal.
# What happens: only topic and partition count, for ==, hash, < and sorting. [TopicPartition("t", 0, 5)] == [TopicPartition("t", 0, 9)] is
# true, also with other metadata and another leader epoch. max() of two positions of a partition gives the first one, whichever is further.
# A set keeps one of them.
# With: confluent-kafka 2.16.1.
# Hurt: tests of the form `assert consumer.committed([...]) == [TopicPartition("t", 0, 10)]`, and code that looks whether a position has
# changed, or takes the furthest of several: compare the attribute `offset`.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3.11 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check confluent-kafka==2.16.1

cat >"$work/look.py" <<'PYTHON'
import sys

from confluent_kafka import TopicPartition

near, far = TopicPartition("t", 0, 5), TopicPartition("t", 0, 9, metadata="x", leader_epoch=3)
seen = {
    "5 == 9": near == far,
    "[5] == [9]": [near] == [far],
    "size of {5, 9}": len({near, far}),
    "5 < 9": near < far,
    "max(5, 9)": max(near, far).offset,
    "sorted([9, 5])": [one.offset for one in sorted([far, near])],
    "partition 0 == partition 1": near == TopicPartition("t", 1, 5),
}
for what, found in seen.items():
    print(f"{what}: {found}")
sys.exit(list(seen.values()) != [True, True, 1, False, 5, [9, 5], False])
PYTHON
"$work/venv/bin/python" "$work/look.py"
