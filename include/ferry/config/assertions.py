"""JWT assertions (RFC 7523): signed with a private key for each request, or read from a file (KIP-1139, KIP-1258).

Kafka's DefaultAssertionCreator, LayeredAssertionJwtTemplate and FileAssertionCreator do the same. Files are read for each request, so
another program may replace them at any time.
"""

import base64
import json
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from ferry.config.credentials import AssertionFile, SignedAssertion
from ferry.errors import ConfigError

# The bytes of each of the two numbers of a signature with ES256 (RFC 7518, 3.4).
_HALF_BYTES = 32


def assertion_text(assertion: SignedAssertion | AssertionFile, now: float) -> str:
    """The JWT; `now` in seconds since the epoch. ConfigError names the file that cannot be used, and shows nothing of its content."""
    if isinstance(assertion, AssertionFile):
        text = _read(assertion.path, "JWT assertion").decode(errors="replace").strip()
        if text.count(".") != 2 or not text.isascii():
            raise ConfigError(f"file {assertion.path} holds no JWT assertion: a JWT has three parts with dots between them")
        return text
    header, claims = _template(assertion)
    header |= {"alg": assertion.algorithm, "typ": "JWT"}
    claims |= {"iat": int(now), "exp": int(now) + assertion.valid_seconds, "nbf": int(now) - assertion.early_seconds}
    if assertion.with_id:
        claims["jti"] = str(uuid.uuid4())
    signed = f"{encoded(header)}.{encoded(claims)}"
    return f"{signed}.{_base64(_signature(assertion, signed.encode()))}"


def encoded(content: Mapping[str, Any]) -> str:
    """A part of a JWT."""
    return _base64(json.dumps(content, separators=(",", ":")).encode())


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _template(assertion: SignedAssertion) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims; those of the file win over those of the properties, as in Java."""
    if assertion.template is None:
        return {}, dict(assertion.claims)
    try:
        content = json.loads(_read(assertion.template, "JWT template"))
        return dict(content.get("header", {})), {**dict(assertion.claims), **content.get("payload", {})}
    except (ValueError, TypeError, AttributeError):
        what = 'must hold a JSON object such as {"header": {"kid": "key-1"}, "payload": {"aud": "https://login.example.com"}}'
        raise ConfigError(f"JWT template {assertion.template} {what}") from None


def _signature(assertion: SignedAssertion, content: bytes) -> bytes:
    passphrase = None if assertion.passphrase is None else assertion.passphrase.reveal().encode()
    try:
        key = load_pem_private_key(_read(assertion.key_file, "private key"), passphrase)
    except (ValueError, TypeError) as problem:
        what = "cannot be used: it must hold a PEM key, and an encrypted one needs sasl.oauthbearer.assertion.private.key.passphrase"
        raise ConfigError(f"private key {assertion.key_file} {what} ({type(problem).__name__})") from None
    sign = _SIGNERS[assertion.algorithm](key)
    if sign is None:
        raise ConfigError(f"private key {assertion.key_file} is not of the kind that {assertion.algorithm} needs")
    return sign(content)


def _rsa(key: object) -> Callable[[bytes], bytes] | None:
    return (lambda content: key.sign(content, padding.PKCS1v15(), hashes.SHA256())) if isinstance(key, rsa.RSAPrivateKey) else None


def _ecdsa(key: object) -> Callable[[bytes], bytes] | None:
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        return None
    return lambda content: b"".join(
        number.to_bytes(_HALF_BYTES, "big") for number in decode_dss_signature(key.sign(content, ec.ECDSA(hashes.SHA256())))
    )


_SIGNERS: Mapping[str, Callable[[object], Callable[[bytes], bytes] | None]] = {"RS256": _rsa, "ES256": _ecdsa}
ALGORITHMS = tuple(_SIGNERS)


def _read(path: str, what: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as problem:
        raise ConfigError(f"{what} {path} cannot be read: {type(problem).__name__}") from None
