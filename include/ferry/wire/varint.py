"""Zigzag variable-length integers, as record fields use them (clients/.../common/utils/ByteUtils.java).

Seven bits a byte, lowest first, the high bit says that more follow; zigzag puts the sign into bit 0. A varint carries 32 bits in at most 5
bytes, a varlong 64 bits in at most 10. Both share one encoding, so one pair of functions serves both. Unsigned ones (no zigzag) serve the
ledger's own format.
"""

MAXIMUM_BYTES = 10
_WORD, _HALF = (1 << 64) - 1, 1 << 63
_TABLE_SIZE = 1 << 14

Buffer = bytes | bytearray | memoryview


def encode_unsigned(value: int) -> bytes:
    """`value` (0 <= value < 2**64) in 1 to 10 bytes; raises ValueError outside that range."""
    if not 0 <= value <= _WORD:
        raise ValueError(f"{value} does not fit 64 bits without a sign")
    encoded = bytearray()
    while value > 0x7F:
        encoded.append((value & 0x7F) | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


# Lengths, offset deltas and most timestamp deltas are small and never negative: index by the value itself.
# Made by lengths. Every process makes this table, and a call for each entry would cost a short process a hundredth of a second.
SMALL = (
    *(bytes((twice,)) for twice in range(0, 1 << 7, 2)),
    *(bytes((twice & 0x7F | 0x80, twice >> 7)) for twice in range(1 << 7, 1 << 14, 2)),
    *(bytes((twice & 0x7F | 0x80, twice >> 7 & 0x7F | 0x80, twice >> 14)) for twice in range(1 << 14, 2 * _TABLE_SIZE, 2)),
)


def encode(value: int) -> bytes:
    """`value` as a zigzag varint, its lowest 64 bits."""
    if 0 <= value < _TABLE_SIZE:
        return SMALL[value]
    value = wrapped(value)
    return encode_unsigned((value << 1) ^ (value >> 63))


def wrapped(value: int) -> int:
    """A sum or difference of two 64-bit numbers, as in Java. If a log's deltas overflowed, only the same overflow gives the time back."""
    return ((value + _HALF) & _WORD) - _HALF


def decode_unsigned(data: Buffer, at: int) -> tuple[int, int]:
    """The unsigned value at index `at` and the index after it; raises ValueError when it is cut short or too long."""
    if at < len(data) and data[at] < 0x80:  # most are that small
        return data[at], at + 1
    value = shift = 0
    for index in range(at, min(at + MAXIMUM_BYTES, len(data))):
        byte = data[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > _WORD:
                break
            return value, index + 1
        shift += 7
    raise ValueError(f"no whole variable-length integer at byte {at}")


def decode(data: Buffer, at: int) -> tuple[int, int]:
    """The zigzag value at index `at` and the index after it; raises ValueError when it is cut short or too long."""
    if at < len(data) and (byte := data[at]) < 0x80:  # most are that small
        return (byte >> 1) ^ -(byte & 1), at + 1
    if at + 1 < len(data) and (second := data[at + 1]) < 0x80:  # or that
        value = data[at] & 0x7F | second << 7
        return (value >> 1) ^ -(value & 1), at + 2
    value, after = decode_unsigned(data, at)
    return (value >> 1) ^ -(value & 1), after
