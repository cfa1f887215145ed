"""Translates an expression of java.util.regex (Java 17) into one with which Python's `re` matches the same whole names.

It parses the expression by Java's rules and writes a new one. Classes and literals become sets of code points, so that no flag of Python
has an effect. `.`, `$`, `\\b` and the like follow Java's definitions. An atomic group becomes a look-ahead and a reference to its match,
because Python 3.11.4 and older match atomic groups wrongly. Expressions without an exact equivalent, and those that Java itself refuses,
raise UnsupportedExpression.

At the same time it collects covers of the names that the expression matches. Covers cannot describe a class or a look-around: there a
prefix ends.
"""

import re
from dataclasses import dataclass, replace

from ferry.policy.code_points import EVERY, code_points, complement, python_class
from ferry.policy.java_classes import LINE_ENDS, Reading, escaped_character, read_class, short_class
from ferry.policy.java_tokens import Tokens, UnsupportedExpression
from ferry.policy.name_covers import EMPTY, EVERYTHING, NARROWED, UNKNOWN, Cover, few, joined, repeated

_GROUP_NAME = re.compile("[a-zA-Z][a-zA-Z0-9]*")
_FLAGS = re.compile("([isd]*)(?:-([isd]*))?")
_BOUNDS = re.compile("([0-9]+)(,([0-9]*))?")
_MOST_REPETITIONS = 2**31 - 1
_WORD = "[0-9A-Z_a-z]"
_BOUNDARY = f"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))"
_NO_BOUNDARY = f"(?:(?<={_WORD})(?={_WORD})|(?<!{_WORD})(?!{_WORD}))"
# Before the line end at the end of the text, which may be two characters; never between the two.
_END = "(?=\\Z|\\r\\n\\Z|[\\r\\x85\\u2028\\u2029]\\Z|(?<!\\r)\\n\\Z)"
_UNIX_END = "(?=\\n?\\Z)"
_LINE_BREAK = "(?:\\r\\n|[\\n\\x0b\\f\\r\\x85\\u2028\\u2029])"
_LOOKING = ("?=", "?!", "?<=", "?<!")


@dataclass(frozen=True, slots=True)
class _Atom:
    text: str
    single: bool = False  # Exactly one character.
    width: bool = True  # False: no character, or something that must not be repeated.
    referring: bool = False  # It contains a back reference or \R, which Java repeats by surprising rules.
    placing: bool = False  # It contains an anchor or a look-around, so an empty match may depend on its place.
    names: tuple[Cover, ...] = UNKNOWN  # Covers of the names that it matches.


def translate(expression: str, *, ascii_names: bool) -> str:
    """The expression for Python, without flags; `ascii_names`: for ASCII texts only. UnsupportedExpression, and re.error of re.compile."""
    return _Translation(Tokens(expression), ascii_names=ascii_names).whole().text


def names_matched(expression: str) -> tuple[Cover, ...]:
    """Covers of the names that the expression matches. UnsupportedExpression as of `translate`."""
    return _Translation(Tokens(expression), ascii_names=True).whole().names


class _Translation:
    """One expression. Groups get names from their Java numbers, because Python's numbers may differ."""

    def __init__(self, tokens: Tokens, *, ascii_names: bool) -> None:
        self._tokens = tokens
        self._flags = Reading(ascii_names)
        self._groups = 0
        self._atomic = 0
        self._names: dict[str, int] = {}
        self._closed: set[int] = set()
        self._depth = 0
        self._flagged = False

    def whole(self) -> _Atom:
        found = self._alternatives()
        if not self._tokens.ended:
            raise UnsupportedExpression("a ) without its (")
        # Flags change what stands behind them.
        return replace(found, names=UNKNOWN) if self._flagged else found

    def _alternatives(self) -> _Atom:
        text, referring, placing = "", False, False
        done: list[Cover] = []
        names = EMPTY
        while not (self._tokens.ended or self._tokens.sees(")")):
            if self._tokens.take("|"):
                text += "|"
                done += names
                names = EMPTY
                continue
            groups, dot = self._groups, self._tokens.sees(".")
            atom = self._quantified(self._atom(), groups, dot=dot)
            text, referring, placing = text + atom.text, referring or atom.referring, placing or atom.placing
            names = joined(names, atom.names)
        return _Atom(text, referring=referring, placing=placing, names=few((*done, *names)))

    def _atom(self) -> _Atom:
        token = self._tokens.read()
        if token.quoted:
            return self._literal(token.character)
        match token.character:
            case "\\":
                return self._escape()
            case "[":
                return _Atom(python_class(read_class(self._tokens, self._flags)), single=True)
            case "(":
                return self._group()
            case ".":
                ends = code_points("\n") if self._flags.unix_lines else LINE_ENDS
                return _Atom(python_class(EVERY if self._flags.dot_all else complement(ends)), single=True)
            case "^":
                return _place("\\A", self._edge(self._tokens.position == 1 or self._tokens.sees("|", -2)))
            case "$":
                end = _UNIX_END if self._flags.unix_lines else _END
                return _place(end, self._edge(self._tokens.ended or self._tokens.sees("|")))
            case "*" | "+" | "?" | "{":
                raise UnsupportedExpression(f"{token.character} with nothing to repeat")
        return self._literal(token.character)

    def _literal(self, character: str) -> _Atom:
        return _Atom(python_class(self._flags.literal(character)), single=True, names=(Cover(character),))

    def _edge(self, at_edge: bool) -> tuple[Cover, ...]:
        """The names of an anchor that begins or ends an alternative of the whole expression; elsewhere it may match nothing (`a^`)."""
        return EMPTY if at_edge and not self._depth else NARROWED

    def _escape(self) -> _Atom:
        letter = self._tokens.syntax()
        match letter:
            case "A":
                return _place("\\A")
            case "z":
                return _place("\\Z")
            case "Z":
                return _place(_UNIX_END if self._flags.unix_lines else _END)
            case "b" | "B":
                if not self._flags.ascii_names:
                    raise UnsupportedExpression(f"\\{letter}, which depends on Java's version where names are not ASCII")
                return _place(_BOUNDARY if letter == "b" else _NO_BOUNDARY)
            case "R":
                return _Atom(_LINE_BREAK, referring=True)
            case "k" if self._tokens.take("<"):
                return self._reference(self._names.get(self._tokens.until(">"), 0))
            case _ if letter in "123456789":
                return self._numbered(letter)
        if (found := short_class(letter, self._tokens, self._flags)) is not None:
            return _Atom(python_class(found), single=True)
        literal = self._literal(escaped_character(letter, self._tokens))
        return replace(literal, names=UNKNOWN) if letter.isalnum() else literal

    def _numbered(self, digits: str) -> _Atom:
        while any(self._tokens.sees(digit) and int(digits + digit) <= self._groups for digit in "0123456789"):
            digits += self._tokens.syntax()
        return self._reference(int(digits))

    def _reference(self, group: int) -> _Atom:
        if group not in self._closed or self._flags.any_case:
            raise UnsupportedExpression("a back reference to a group that is open, repeated or not there, or one beside (?i)")
        return _Atom(f"(?P=g{group})", referring=True)

    def _group(self) -> _Atom:
        outside = self._flags
        prefix, opening = self._prefix()
        if prefix == "flags":
            return _Atom("", width=False)
        number = 0
        if prefix == "capturing":
            number = self._groups = self._groups + 1
            if opening and (not _GROUP_NAME.fullmatch(opening) or opening in self._names):
                raise UnsupportedExpression(f"the group name {opening}, not of letters and digits or given twice")
            if opening:
                self._names[opening] = number
            opening = f"(?P<g{number}>"
        self._depth += 1
        inside = self._alternatives()
        self._depth -= 1
        if not self._tokens.take(")"):
            raise UnsupportedExpression("a ( that is not closed")
        self._flags = outside
        if number:
            self._closed.add(number)
        if inside.referring and opening.startswith("(?<"):
            raise UnsupportedExpression("a back reference or \\R in a look-behind")
        if prefix == "atomic":
            return self._as_atomic(inside)
        whole = replace(inside, text=f"{opening}{inside.text})")
        # A look-around only narrows.
        return replace(whole, width=False, placing=True, names=NARROWED) if prefix == "looking" else whole

    def _prefix(self) -> tuple[str, str]:
        """The kind of group that begins, and its opening in Python or, for a capturing group, its name."""
        for looking in _LOOKING:
            if self._tokens.take(looking):
                return "looking", f"({looking}"
        if self._tokens.take("?<"):
            return "capturing", self._tokens.until(">") or ">"
        if self._tokens.take("?>"):
            return "atomic", ""
        if not self._tokens.take("?"):
            return "capturing", ""
        flags = ""
        while not (self._tokens.sees(":") or self._tokens.sees(")")):
            flags += self._tokens.syntax()
        self._set_flags(flags)
        return ("plain", "(?:") if self._tokens.syntax() == ":" else ("flags", "")

    def _set_flags(self, letters: str) -> None:
        found = _FLAGS.fullmatch(letters)
        if found is None:
            raise UnsupportedExpression(f"(?{letters}): of the flags, i, s and d are known")
        names = {"i": "any_case", "s": "dot_all", "d": "unix_lines"}
        self._flagged = self._flagged or bool(letters)
        on, off = dict.fromkeys(found[1], True), dict.fromkeys(found[2] or "", False)
        self._flags = replace(self._flags, **{names[letter]: value for letter, value in (on | off).items()})

    def _quantified(self, atom: _Atom, groups_before: int, *, dot: bool) -> _Atom:
        bounds, least = self._bounds()
        if not bounds:
            return atom
        if not atom.width or atom.referring:
            raise UnsupportedExpression(f"{bounds} behind a place, a look-around, a flag, \\R or a back reference")
        # Java ends a loop at the first empty round, even before its least number.
        if atom.placing and least > 1:
            raise UnsupportedExpression(f"{bounds} behind a group with a place or a look-around in it")
        # After backtracking, a repeated group may hold different texts in the two engines.
        self._closed -= set(range(groups_before + 1, self._groups + 1))
        names = (EVERYTHING,) if dot and bounds == "*" else repeated(atom.names, bounds, least)
        if self._tokens.take("+"):
            once = atom if atom.single else self._as_atomic(atom)
            return self._as_atomic(replace(once, text=f"{once.text}{bounds}", single=False, names=names))
        lazy = "?" if self._tokens.take("?") else ""
        if self._tokens.sees("*") or self._tokens.sees("{") or self._tokens.sees("?"):
            raise UnsupportedExpression("two quantifiers in a row")
        return replace(atom, text=f"{atom.text}{bounds}{lazy}", single=False, names=names)

    def _bounds(self) -> tuple[str, int]:
        """The text of a quantifier, empty if there is none, and its least number."""
        for simple, least in (("*", 0), ("+", 1), ("?", 0)):
            if self._tokens.take(simple):
                return simple, least
        if not self._tokens.take("{"):
            return "", 1
        text = self._tokens.until("}")
        found = _BOUNDS.fullmatch(text)
        if found is None or int(found[1]) > int(found[3] or found[1]) or int(found[3] or found[1]) > _MOST_REPETITIONS:
            raise UnsupportedExpression(f"{{{text}}}, which is no {{least,most}}")
        return f"{{{text}}}", int(found[1])

    def _as_atomic(self, atom: _Atom) -> _Atom:
        self._atomic += 1
        return replace(atom, text=f"(?:(?=(?P<a{self._atomic}>{atom.text}))(?P=a{self._atomic}))")


def _place(text: str, names: tuple[Cover, ...] = UNKNOWN) -> _Atom:
    return _Atom(text, width=False, placing=True, names=names)
