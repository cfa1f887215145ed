"""The text of an imported `mm2.properties`: first the entries for all flows, then each cluster, then each flow (pure)."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ferry.config.keys import Keys
from ferry.config.properties import entry_line
from ferry.imports.importing import Fate, Imported, Row, clusters_of, printable


def rendered(imported: Imported, sources: Iterable[Path]) -> str:
    """The file, in ASCII. An entry that cannot be kept is a comment without its value, which may be a secret."""
    return "".join(f"{line}\n" for line in _lines(imported, sources))


def _lines(imported: Imported, sources: Iterable[Path]) -> Iterator[str]:
    yield f"# Written by ferry import from {_ascii(', '.join(path.name for path in sources))}. MirrorMaker 2 reads the same file."
    yield "# Every key: docs/properties.md. Examine it: ferry doctor. What a run would do: ferry plan."
    yield from (f"# MISSING: {_ascii(text)}" for text in imported.missing)
    left = {row.becomes: row for row in imported.rows if row.fate is Fate.NOT_KEPT and row.becomes}
    for prefix, section in _sections(imported, [*imported.entries, *left]).items():
        if section:
            yield ""
            first = {f"{prefix}enabled", f"{prefix}bootstrap.servers", "clusters"}
            for key in sorted(section, key=lambda key: key not in first):
                yield from _entry(imported, key, left)
    yield from _without_key(imported.rows)


def _sections(imported: Imported, keys: Iterable[str]) -> Mapping[str, list[str]]:
    """The keys by the prefix of their cluster or flow; those of all under an empty one, first."""
    known = Keys(tuple(clusters_of(imported.entries)))
    pairs = [pair.name for pair in known.pairs]
    sections: dict[str, list[str]] = {prefix: [] for prefix in ("", *(f"{name}." for name in (*known.aliases, *pairs)))}
    for key in keys:
        sections[known.scope(key)[0]].append(key)
    return sections


def _entry(imported: Imported, key: str, left: Mapping[str, Row]) -> Iterator[str]:
    why = imported.why.get(key, "")
    if key.removesuffix(".enabled") in imported.off:
        yield "# This flow is off because of what cannot be kept: read NOT KEPT and MISSING in this file, decide, then set true."
    elif why:
        yield f"# {'NOT KEPT: ' if key in left else ''}{_ascii(why)}"
    if key in left:
        yield f"# {_ascii(key)} = (see {_ascii(Path(left[key].path).name)}, line {left[key].line})"
    else:
        yield entry_line(key, imported.entries[key].value)


def _without_key(rows: Iterable[Row]) -> Iterator[str]:
    """Entries of the inputs that have no key in the new file."""
    gone = [row for row in rows if not row.becomes]
    if lost := [row for row in gone if row.fate is Fate.NOT_KEPT]:
        yield ""
        yield from (f"# NOT KEPT: {_ascii(row.key)} ({_ascii(Path(row.path).name)}, line {row.line}): {_ascii(row.why)}" for row in lost)
    if idle := [row for row in gone if row.fate is Fate.NO_EFFECT]:
        yield ""
        yield "# Left out, because it has no effect in Ferry:"
        for why in dict.fromkeys(row.why for row in idle):
            names = dict.fromkeys(_ascii(row.key) for row in idle if row.why == why)
            yield f"#   {', '.join(names)}: {_ascii(why)}"


def _ascii(text: str) -> str:
    return printable(text).encode("ascii", "backslashreplace").decode()
