"""Damaged copies of valid input, and how many of them are tried: `make fuzz EXAMPLES=n`."""

from __future__ import annotations

import json
import os
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

EXAMPLES = int(os.environ.get("FERRY_FUZZ_EXAMPLES", "60"))

fuzzed = settings(max_examples=EXAMPLES)

# What length, count and offset fields are broken with, as they stand in a record: int8 to int64, and varints.
FIELDS = (
    *(
        value.to_bytes(size, "big", signed=True)
        for size in (1, 2, 4, 8)
        for value in (-(1 << (8 * size - 1)), -1, 0, 1, (1 << (8 * size - 1)) - 1, (1 << (8 * size - 2)) + 3)
    ),
    *(b"\x80" * 9 + b"\x01", b"\xff" * 4 + b"\x0f", b"\xfe" + b"\xff" * 8 + b"\x01", b"\xff" * 11),
)

# Deeper than Python reads; a short name, because examples are printed.
DEEP = "[" * 3_000 + "]" * 3_000
# Values of JSON that stand where others should; 1e999 is read as infinity.
LEAVES = ("null", "true", "-1", "0", "1e999", "NaN", "0.5", "9" * 30, '""', '"x"', r'"\ud800"', "[]", "{}", "[[1]]", DEEP)


@st.composite
def damaged(draw: st.DrawFn, valid: st.SearchStrategy[bytes]) -> bytes:
    """Valid input cut short, with bits flipped, with fields overwritten, with bytes inserted or left out; or something else altogether."""
    data = bytearray(draw(valid))
    kind = draw(st.sampled_from(["cut", "flip", "flip", "field", "field", "insert", "remove", "other"]))
    if kind == "other" or not data:
        return draw(st.binary(max_size=300))
    at = draw(st.integers(0, len(data) - 1))
    if kind == "cut":
        del data[at:]
    elif kind == "flip":
        for bit in draw(st.lists(st.integers(0, len(data) * 8 - 1), min_size=1, max_size=3)):
            data[bit // 8] ^= 1 << (bit % 8)
    elif kind == "field":
        field = draw(st.sampled_from(FIELDS))
        data[at : at + len(field)] = field
    elif kind == "insert":
        data[at:at] = draw(st.binary(min_size=1, max_size=9))
    else:
        del data[at : at + draw(st.integers(1, 9))]
    return bytes(data)


@st.composite
def damaged_json(draw: st.DrawFn, valid: st.SearchStrategy[bytes]) -> bytes:
    """A valid document with one value replaced or left out, or damaged as any bytes."""
    data = draw(valid)
    if draw(st.integers(0, 3)) == 0:
        return draw(damaged(st.just(data)))
    document = json.loads(data)
    places = list(_places(document))
    holder, key = draw(st.sampled_from(places)) if places else (None, None)
    if holder is None:
        return draw(st.sampled_from(LEAVES)).encode()
    if isinstance(holder, dict) and draw(st.integers(0, 4)) == 0:
        del holder[key]
        return json.dumps(document).encode()
    holder[key] = "here"
    return json.dumps(document).replace('"here"', draw(st.sampled_from(LEAVES)), 1).encode()


def _places(document: Any) -> Any:
    for key in range(len(document)) if isinstance(document, list) else list(document) if isinstance(document, dict) else ():
        yield document, key
        yield from _places(document[key])
