"""Reads stores in Java's own format, JKS.

The format is that of `sun.security.provider.JavaKeyStore`, big-endian: magic, version, number of entries, the entries, and a SHA-1 digest
of the password and everything before. A private key is XORed with a stream of digests (`sun.security.provider.KeyProtector`). It follows an
algorithm identifier whose empty parameters are a NULL, or are missing in Java 21 and newer updates of Java 17 (JDK-8301793).
"""

import hashlib
import struct
from dataclasses import dataclass, field
from typing import Any

MAGIC = b"\xfe\xed\xfe\xed"
_VERSION = 2  # 1 is of Java 1.1
_KEY, _CERTIFICATE = 1, 2
# DER (X.690) of the parts around the key.
_SEQUENCE, _OCTET_STRING, _NULL = 0x30, 0x04, b"\x05\x00"
_KEY_PROTECTOR = bytes.fromhex("060a2b060104012a02110101")  # the object identifier 1.3.6.1.4.1.42.2.17.1.1
_WHITENER = b"Mighty Aphrodite"
_DIGEST_BYTES = 20


class Unreadable(Exception):
    """A store cannot be opened; the text says why, without the password."""


@dataclass(frozen=True)
class CoveredKey:
    """A private key, encrypted with its own password, and the DER of its certificate and of its issuers'."""

    alias: str
    covered: bytes = field(repr=False)
    chain: list[bytes] = field(repr=False)


def read_jks(data: bytes, password: str | None) -> tuple[list[bytes], list[CoveredKey]]:
    """DER of the trusted certificates, and the keys. Without a password the digest is not checked, as in Java."""
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    try:
        found = _Entries(body).read()
    except (struct.error, ValueError):
        raise Unreadable("is a damaged JKS store") from None
    if password is not None and _sha1(_spelled(password) + _WHITENER + body) != digest:
        raise Unreadable("is a JKS store that is damaged, or its password is wrong")
    return found


def uncovered(key: CoveredKey, password: str) -> bytes:
    """DER of the private key (PKCS#8, not encrypted)."""
    try:
        algorithm, octets = _covered_key_info(key.covered)
    except ValueError:
        raise Unreadable(f"holds the private key {key.alias}, which is damaged") from None
    if algorithm not in {_KEY_PROTECTOR, _KEY_PROTECTOR + _NULL}:
        raise Unreadable(f"holds the private key {key.alias}, which is encrypted in a way that is not JKS's")
    salt, covered, digest = octets[:_DIGEST_BYTES], octets[_DIGEST_BYTES:-_DIGEST_BYTES], octets[-_DIGEST_BYTES:]
    spelled, stream, last = _spelled(password), bytearray(), salt
    while len(stream) < len(covered):
        last = _sha1(spelled + last)
        stream += last
    plain = bytes(one ^ other for one, other in zip(covered, stream, strict=False))
    if _sha1(spelled + plain) != digest:
        what = "but its password is not ssl.key.password (if that is not set: ssl.keystore.password)"
        raise Unreadable(f"holds the private key {key.alias}, {what}")
    return plain


def _covered_key_info(der: bytes) -> tuple[bytes, bytes]:
    """The content of the algorithm identifier, and the encrypted key (EncryptedPrivateKeyInfo of PKCS#8). ValueError."""
    info, after = _element(der, _SEQUENCE)
    algorithm, rest = _element(info, _SEQUENCE)
    octets, more = _element(rest, _OCTET_STRING)
    if after or more:
        raise ValueError("bytes after the end")
    return algorithm, octets


def _element(der: bytes, tag: int) -> tuple[bytes, bytes]:
    """The content of the first element, and the bytes behind it. ValueError if it has another tag or is cut."""
    if len(der) < 2 or der[0] != tag:
        raise ValueError(der[:2])
    size, start = der[1], 2
    if size & 0x80:
        start += size & 0x7F
        size = int.from_bytes(der[2:start])
    if len(der) < start + size:
        raise ValueError(size)
    return der[start : start + size], der[start + size :]


@dataclass
class _Entries:
    """The content before the digest; struct.error for a field beyond the end."""

    data: bytes
    at: int = 0

    def read(self) -> tuple[list[bytes], list[CoveredKey]]:
        trusted: list[bytes] = []
        keys: list[CoveredKey] = []
        magic, version, count = self._fields(">4sII")
        if magic != MAGIC or version != _VERSION:
            raise ValueError(version)
        for _ in range(count):
            (kind,) = self._fields(">I")
            alias = self._sized(">H").decode(errors="replace")
            self._fields(">Q")  # its creation time
            if kind == _KEY:
                covered = self._sized(">I")
                keys.append(CoveredKey(alias, covered, [self._certificate() for _ in range(*self._fields(">I"))]))
            elif kind == _CERTIFICATE:
                trusted.append(self._certificate())
            else:
                raise ValueError(kind)
        return trusted, keys

    def _certificate(self) -> bytes:
        self._sized(">H")  # X.509
        return self._sized(">I")

    def _sized(self, length: str) -> bytes:
        (size,) = self._fields(length)
        found: bytes = self._fields(f"{size}s")[0]
        return found

    def _fields(self, layout: str) -> tuple[Any, ...]:
        found = struct.unpack_from(layout, self.data, self.at)
        self.at += struct.calcsize(layout)
        return found


def _spelled(password: str) -> bytes:
    """The password as Java hashes it: its chars, two bytes each."""
    return password.encode("utf-16-be", "surrogatepass")


def _sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()
