"""What a release ships and what it needs, each piece with its licence as an SPDX expression.

The pieces of Python come from the metadata of the installed packages, which are those of the locks. Metadata that is no SPDX expression is
translated by `SPDX`. Where it is wrong or says too little, `READ` has what the licence file of the package says.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import Distribution, distribution

from license_expression import ExpressionError, LicenseWithExceptionSymbol, get_spdx_licensing
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools.release.building import ROOT

from ferry import __version__

SPDX = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "Apache Software License 2.0": "Apache-2.0",
    "BSD 2-Clause License": "BSD-2-Clause",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT -or- Apache License 2.0": "MIT OR Apache-2.0",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
READ = {
    "itsdangerous": "BSD-3-Clause",
    "jinja2": "BSD-3-Clause",
    "libcst": "MIT AND PSF-2.0 AND Apache-2.0",
    # These two have no licence file and no metadata about it: it is that of their projects.
    "openlineage-sql": "Apache-2.0",
    "openssl": "Apache-2.0",
    "pandas": "BSD-3-Clause",
    "py4j": "BSD-3-Clause",
    "python-dateutil": "BSD-3-Clause",
    "sqlparse": "BSD-3-Clause",
    "text-unidecode": "Artistic-1.0 OR GPL-2.0-or-later",
}
PERMISSIVE = frozenset({
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "LLVM-exception", "MIT", "MIT-0", "PSF-2.0", "Unicode-3.0",
    "Unlicense", "Zlib", "curl",
})  # fmt: skip
# May be shipped unchanged with their source, which the archive holds (setup/spark-environment.sh).
WITH_SOURCE = frozenset({"LGPL-2.1-or-later"})
# May be required, but not shipped: whoever installs Ferry gets these packages from their authors.
REQUIRED_ONLY = frozenset({"Artistic-1.0", "MPL-2.0"})

# What confluent-kafka's compiled library is made of. Its wheel says so in its licence file and in the library, but has no SBOM.
_LIBRDKAFKA = {"librdkafka": "BSD-2-Clause", "openssl": "Apache-2.0", "curl": "curl", "zlib": "Zlib", "zstd": "BSD-3-Clause"}
# Compiled at installation, so no lock has them.
_KERBEROS = {"decorator": "BSD-2-Clause", "gssapi": "ISC"}
_PYTHON = {"python_version": "3.11", "python_full_version": "3.11.0"}
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
_VENDORED = ROOT / "include" / "ferry" / "page" / "static" / "vendor" / "README.md"
_VENDORED_ROW = re.compile(r"^\| `[\w.-]+` \|[^|]*\| (\S+) (\S+) \| ([^|]+) \|", re.MULTILINE)
_SPDX = get_spdx_licensing()


@dataclass(frozen=True, order=True)
class Piece:
    """A package or a library. `inside`: what it is compiled from, if a release ships it; `requires`: names of packages that it needs."""

    name: str
    version: str
    licence: str
    inside: tuple[Piece, ...] = field(default=(), compare=False)
    requires: tuple[str, ...] = field(default=(), compare=False)


FERRY = Piece("kafka-ferry", __version__, _PROJECT["project"]["license"])
WHEEL, EXECUTORS, ALWAYS = "wheel", "executors", "always"


def parts() -> dict[str, tuple[Piece, ...]]:
    """What is in the wheel, what is in the archive for executors, what pip always installs, and what it adds for each extra."""
    page = {Piece(*row) for row in _VENDORED_ROW.findall(_VENDORED.read_text(encoding="utf-8"))}
    executors = (replace(piece, inside=tuple(_inside(piece.name))) for piece in packages(_PROJECT["dependency-groups"]["executors"]))
    extras = {
        f"extra {name}": packages(wanted) for name, wanted in _PROJECT["project"]["optional-dependencies"].items() if name != "kerberos"
    }
    return {
        WHEEL: (FERRY, *sorted(page)),
        EXECUTORS: (FERRY, *executors),
        ALWAYS: packages(_PROJECT["project"]["dependencies"]),
        **extras,
        "extra kerberos": tuple(Piece(name, "", licence) for name, licence in _KERBEROS.items()),
    }


def packages(wanted: Iterable[str]) -> tuple[Piece, ...]:
    """These packages and all that they need, for Python 3.11 on this platform."""
    needs: dict[str, set[str]] = {}
    seen: dict[str, set[str]] = {}
    left = [Requirement(text) for text in wanted]
    while left:
        requirement = left.pop()
        name = canonicalize_name(requirement.name)
        for extra in {"", *requirement.extras} - seen.setdefault(name, set()):
            seen[name].add(extra)
            found = map(Requirement, distribution(name).requires or ())
            needed = [one for one in found if one.marker is None or one.marker.evaluate({**_PYTHON, "extra": extra})]
            needs.setdefault(name, set()).update(canonicalize_name(one.name) for one in needed)
            left += needed
    return tuple(sorted(_piece(distribution(name), requires) for name, requires in needs.items()))


def _piece(installed: Distribution, requires: Iterable[str]) -> Piece:
    name = canonicalize_name(installed.metadata["Name"])
    return Piece(name, installed.version, READ.get(name) or _licence(installed), requires=tuple(sorted(requires)))


def _licence(installed: Distribution) -> str:
    told = installed.metadata
    classifiers = [text.split(" :: ")[-1] for text in told.get_all("Classifier") or () if text.startswith("License :: ")]
    stated = [text for name in ("License-Expression", "License") for text in told.get_all(name) or ()]
    for text in (*stated, *classifiers):
        try:
            return str(_SPDX.parse(SPDX.get(text, text), validate=True))
        except ExpressionError:
            continue
    raise LookupError(f"{told['Name']} {told['Version']}: read its licence file and add it to READ")


def _inside(name: str) -> Iterator[Piece]:
    """What the package's own SBOMs (PEP 770) list."""
    if name == "confluent-kafka":
        yield from (Piece(inner, "", licence) for inner, licence in _LIBRDKAFKA.items())
    for file in distribution(name).files or ():
        if "sboms" in file.parts:
            for told in json.loads(file.read_text(encoding="utf-8"))["components"]:
                yield Piece(told["name"], told["version"], READ.get(told["name"]) or told["licenses"][0]["expression"])


def allows(allowed: frozenset[str], expression: str) -> bool:
    """Whether the allowed licences are enough for the expression: for all sides of AND, for one side of OR."""

    def enough(node: object) -> bool:
        if isinstance(node, _SPDX.AND | _SPDX.OR):
            return (all if isinstance(node, _SPDX.AND) else any)(map(enough, node.args))
        names = [node.license_symbol, node.exception_symbol] if isinstance(node, LicenseWithExceptionSymbol) else [node]
        return {str(name) for name in names} <= allowed

    return enough(_SPDX.parse(expression, validate=True))


def checksum(listed: Mapping[str, Iterable[Piece]]) -> str:
    """Changes when a part gets another package or a package another licence; not with a version."""
    rows = sorted(
        f"{part} {piece.name} {inner.name} {inner.licence}"
        for part, pieces in listed.items()
        for piece in pieces
        for inner in (piece, *piece.inside)
    )
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]
