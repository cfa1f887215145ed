"""The text of an imported `mm2.properties`: the clusters first, then each flow, then what holds for all (pure)."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ferry.config.properties import entry_line
from ferry.imports.importing import Fate, Imported, Row


def rendered(imported: Imported, sources: Iterable[Path]) -> str:
    """The file, in ASCII. An entry that cannot be kept is a comment without its value, which may be a secret."""
    return "".join(f"{line}\n" for line in _lines(imported, sources))


def _lines(imported: Imported, sources: Iterable[Path]) -> Iterator[str]:
    yield f"# Written by ferry import from {', '.join(path.name for path in sources)}. MirrorMaker 2 reads the same file."
    yield "# Every key: docs/properties.md. Examine it: ferry doctor. What a run would do: ferry plan."
    aliases = [alias.strip() for alias in imported.entries["clusters"].value.split(",")]
    pairs = [f"{source}->{target}" for source in aliases for target in aliases if source != target]
    prefixes = [f"{name}." for name in (*aliases, *pairs)]
    left = {row.becomes: row for row in imported.rows if row.fate is Fate.NOT_KEPT and row.becomes}
    keys = [*imported.entries, *left]
    sections = {"": [key for key in keys if not key.startswith(tuple(prefixes))]}
    for prefix in prefixes:
        longer = tuple(other for other in prefixes if len(other) > len(prefix) and other.startswith(prefix))
        sections[prefix] = [key for key in keys if key.startswith(prefix) and not (longer and key.startswith(longer))]
    why = imported.made | {row.becomes: row.why for row in imported.rows if row.why and row.becomes}
    for prefix, section in sections.items():
        if section:
            yield ""
            first = {f"{prefix}enabled", f"{prefix}bootstrap.servers", "clusters"}
            for key in sorted(section, key=lambda key: key not in first):
                yield from _entry(imported, key, why.get(key, ""), left)
    yield from _without_key(imported.rows)


def _entry(imported: Imported, key: str, why: str, left: dict[str, Row]) -> Iterator[str]:
    if why:
        yield f"# {'NOT KEPT: ' if key in left else ''}{_ascii(why)}"
    if key in left:
        yield f"# {_ascii(key)} = (see {Path(left[key].path).name}, line {left[key].line})"
    elif key.removesuffix(".enabled") in imported.off:
        yield "# This flow is off because of what cannot be kept: read NOT KEPT in this file, decide, then set true."
        yield entry_line(key, "false")
    else:
        yield entry_line(key, imported.entries[key].value)


def _without_key(rows: Iterable[Row]) -> Iterator[str]:
    """What is in the inputs and has no key here."""
    gone = [row for row in rows if not row.becomes]
    lost = [row for row in gone if row.fate is Fate.NOT_KEPT]
    if lost:
        yield ""
        yield from (f"# NOT KEPT: {_ascii(row.key)} ({Path(row.path).name}, line {row.line}): {_ascii(row.why)}" for row in lost)
    idle = [row for row in gone if row.fate is Fate.NO_EFFECT]
    if idle:
        yield ""
        yield "# Left out, because it has no effect in Ferry:"
        reasons = dict.fromkeys(row.why for row in idle)
        yield from (f"#   {', '.join(dict.fromkeys(_ascii(row.key) for row in idle if row.why == why))}: {_ascii(why)}" for why in reasons)


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode().replace("\n", " ")
