"""What the registry answers when it refuses: HTTP status, `error_code` and message.

Codes: `Errors` of confluentinc/schema-registry, and "Schema Registry API Reference" of Confluent's documentation. The messages are our own.
"""

from __future__ import annotations


class Refused(Exception):
    """`code` is the registry's `error_code`; its first three digits are the HTTP status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message
        self.status = int(str(code)[:3])


def subject_not_found(subject: str | None) -> Refused:
    return Refused(40401, f"subject {subject!r} is not there")


def version_not_found(version: int) -> Refused:
    return Refused(40402, f"version {version} is not there")


def schema_not_found(what: object) -> Refused:
    return Refused(40403, f"schema {what} is not there")


def subject_soft_deleted(subject: str) -> Refused:
    return Refused(40404, f"subject {subject!r} is soft-deleted already")


def subject_not_soft_deleted(subject: str) -> Refused:
    return Refused(40405, f"subject {subject!r} is not soft-deleted yet")


def version_soft_deleted(subject: str, version: int) -> Refused:
    return Refused(40406, f"version {version} of {subject!r} is soft-deleted already")


def version_not_soft_deleted(subject: str, version: int) -> Refused:
    return Refused(40407, f"version {version} of {subject!r} is not soft-deleted yet")


def config_not_set(subject: str) -> Refused:
    return Refused(40408, f"subject {subject!r} has no compatibility of its own")


def mode_not_set(subject: str) -> Refused:
    return Refused(40409, f"subject {subject!r} has no mode of its own")


def incompatible(subject: str) -> Refused:
    return Refused(40901, f"the schema is not compatible with an earlier one of {subject!r}")


def invalid_schema(why: str) -> Refused:
    return Refused(42201, f"invalid schema: {why}")


def invalid_version(text: str) -> Refused:
    return Refused(42202, f"{text!r} is no version")


def invalid_compatibility(text: object) -> Refused:
    return Refused(42203, f"{text!r} is no compatibility level")


def invalid_mode(text: object) -> Refused:
    return Refused(42204, f"{text!r} is no mode, or not of a subject")


def not_permitted(why: str) -> Refused:
    return Refused(42205, why)


def referenced(subject: str, version: int) -> Refused:
    return Refused(42206, f"another schema references version {version} of {subject!r}")


def invalid_subject(subject: str) -> Refused:
    return Refused(42208, f"{subject!r} is no subject")


def context_not_empty(context: str) -> Refused:
    return Refused(42211, f"context {context!r} is not empty")
