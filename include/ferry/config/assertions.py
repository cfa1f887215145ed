"""JWT assertions (RFC 7523). Ferry signs one with a private key for each request, or reads it from a file (KIP-1139, KIP-1258).

Kafka's DefaultAssertionCreator, LayeredAssertionJwtTemplate and FileAssertionCreator do the same. Files are read for each request, so
another program may replace them at any time.
"""

import json
import uuid
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from ferry.config.credentials import AssertionFile, SignedAssertion
from ferry.errors import ConfigError


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
    return _signed(assertion, header, claims)


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


def _signed(assertion: SignedAssertion, header: dict[str, Any], claims: dict[str, Any]) -> str:
    passphrase = None if assertion.passphrase is None else assertion.passphrase.reveal().encode()
    try:
        key = load_pem_private_key(_read(assertion.key_file, "private key"), passphrase)
    except (ValueError, TypeError) as problem:
        what = "cannot be used: it must hold a PEM key, and an encrypted one needs sasl.oauthbearer.assertion.private.key.passphrase"
        raise ConfigError(f"private key {assertion.key_file} {what} ({type(problem).__name__})") from None
    try:
        # It refuses keys of other kinds itself.
        return jwt.encode(claims, key, assertion.algorithm, header)  # type: ignore[arg-type]
    except (jwt.InvalidKeyError, TypeError) as problem:
        what = f"private key {assertion.key_file} is not of the kind that {assertion.algorithm} needs"
        raise ConfigError(f"{what}, or a claim is not of the kind that it must be: {problem}") from None


def _read(path: str, what: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as problem:
        raise ConfigError(f"{what} {path} cannot be read: {type(problem).__name__}") from None
