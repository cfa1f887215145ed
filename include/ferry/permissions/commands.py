"""Rights as `kafka-acls` commands to paste into a shell (pure). All values are quoted, so the shell does not interpret them."""

import shlex
from collections.abc import Iterable, Iterator
from itertools import groupby

from ferry.clusters.admin.acl_binding import AclPattern, AclResource
from ferry.clusters.net.partitions import grouped
from ferry.errors import ArgumentError
from ferry.permissions.rights import Resource, Right

TOOL = "kafka-acls.sh"
_OPTIONS = {AclResource.TOPIC: "--topic", AclResource.GROUP: "--group", AclResource.TRANSACTIONAL_ID: "--transactional-id"}


def checked_principal(text: str, option: str) -> str:
    """A principal as Kafka writes them, `User:name`. ArgumentError for anything else."""
    kind, colon, name = text.partition(":")
    if not (kind.isalpha() and colon and name and text.isprintable()):
        raise ArgumentError(f"{option}: {text!r} is no principal: write it as brokers do, like User:ferry")
    return text


def commands(bootstrap: str, principal: str, rights: Iterable[Right], command_config: str | None = None) -> Iterator[tuple[str, str]]:
    """A comment and a command for each resource. `bootstrap`: host:port, comma-separated; `command_config`: the administrator's login."""
    servers = ",".join(part.strip() for part in bootstrap.split(","))
    start = [TOOL, *_option("--bootstrap-server", servers), *(_option("--command-config", command_config) if command_config else ())]
    for resource, found in groupby(sorted(rights), key=lambda right: right.resource):
        same = list(found)
        options = [part for right in same for part in _option("--operation", right.operation.value)]
        words = [*start, "--add", *_option("--allow-principal", principal), *options, *_named(resource)]
        together = grouped((right.needed_for, right.operation.value) for right in same)
        reasons = "; ".join(f"{', '.join(operations)} for {', '.join(why)}" for why, operations in together.items())
        yield in_one_line(f"# {resource}: {reasons}"), " ".join(shlex.quote(word) for word in words)


def in_one_line(text: str) -> str:
    """`text` with escapes instead of characters that cannot be printed: a line end in a name would end the comment."""
    return "".join(character if character.isprintable() else character.encode("unicode_escape").decode() for character in text)


def _named(resource: Resource) -> list[str]:
    if resource.kind is AclResource.CLUSTER:
        return ["--cluster"]
    pattern = ["--resource-pattern-type", "prefixed"] if resource.pattern is AclPattern.PREFIXED else []
    return [*_option(_OPTIONS[resource.kind], resource.name), *pattern]


def _option(name: str, value: str) -> list[str]:
    """An option with its value; in one word if the value itself looks like an option."""
    return [f"{name}={value}"] if value.startswith("-") else [name, value]
