"""Subjects and their contexts: `orders-value` is in the default context `.`, `:.eu:orders-value` in `.eu`.

Contexts have ids of their own (QualifiedSubject of confluentinc/schema-registry). `:.eu:` alone names a context; modes and configs can
be set for it. `:.__GLOBAL:` stands above all contexts, and only modes and configs know it.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

DEFAULT, GLOBAL = ".", ".__GLOBAL"
EVERYWHERE = ":*:"


class Subject(NamedTuple):
    """Sorts as the registry does: by context, then by name."""

    context: str
    name: str

    @property
    def text(self) -> str:
        return self.name if self.context == DEFAULT else f":{self.context}:{self.name}"


@cache  # each page of a list parses the names of all versions
def parsed(text: str) -> Subject:
    if text.startswith(":."):
        context, _, name = text[1:].partition(":")
        return Subject(context, name)
    return Subject("*", text[len(EVERYWHERE) :]) if text.startswith(EVERYWHERE) else Subject(DEFAULT, text)


def context_of(text: str | None) -> str:
    return parsed(text or "").context


def beside(referring: str, reference: str) -> str:
    """The subject that a reference means: in the context of the schema that refers, unless it names one."""
    there, here = parsed(reference), parsed(referring)
    return (there if there.context != DEFAULT else Subject(here.context, reference)).text


def within(text: str, scope: str | None) -> bool:
    """Whether a subject is what `scope` names: everything (None), one subject, or the subjects of a context."""
    if scope is None or text == scope:
        return True
    context, name = parsed(scope)
    return not name and context in (GLOBAL, context_of(text))


def scope_of(text: str | None) -> str | None:
    """A subject or context as modes and configs name it; None: the default context."""
    return None if text is None or parsed(text) == Subject(DEFAULT, "") else parsed(text).text


def is_valid(text: str, for_settings: bool = False) -> bool:
    context, name = parsed(text)
    return text.isprintable() and name not in ("__GLOBAL", "__EMPTY") and (for_settings or context != GLOBAL)


def in_context(context: str, text: str) -> str:
    """The path of a client that puts a context before the path: `/contexts/.eu/subjects/a` means `:.eu:a` (ContextFilter)."""
    bare = context.strip(":")
    bare = bare if bare.startswith(".") else f".{bare}"
    return text if bare == DEFAULT or text.startswith((":.", EVERYWHERE)) else f":{bare}:{text}"
