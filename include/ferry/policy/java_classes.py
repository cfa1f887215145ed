"""Character classes and escapes of java.util.regex (Java 17), read into sets of code points.

If all names are ASCII, a Unicode category stands for its ASCII part. Otherwise categories are not supported, because the letters that Java
knows depend on its version. Constructs that Java itself reads in surprising ways (operands of && that mix brackets and characters) are not
supported either.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ferry.policy.code_points import EVERY, CodePoints, ascii_of_category, both_cases, code_points, complement, intersection, union
from ferry.policy.java_tokens import Token, Tokens, UnsupportedExpression

LINE_ENDS = code_points("\n\r\x85\u2028\u2029")
_UPPER, _LOWER, _DIGIT = code_points((65, 90)), code_points((97, 122)), code_points((48, 57))
_ALPHA = union(_UPPER, _LOWER)
_ALNUM = union(_ALPHA, _DIGIT)
_PUNCT = code_points("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_SPACE = code_points(" \t\n\x0b\f\r")
_POSIX: Mapping[str, CodePoints] = {
    "Lower": _LOWER,
    "Upper": _UPPER,
    "ASCII": code_points((0, 127)),
    "Alpha": _ALPHA,
    "Digit": _DIGIT,
    "Alnum": _ALNUM,
    "Punct": _PUNCT,
    "Graph": union(_ALNUM, _PUNCT),
    "Print": union(_ALNUM, _PUNCT, code_points(" ")),
    "Blank": code_points(" \t"),
    "Cntrl": code_points((0, 31), (127, 127)),
    "XDigit": union(_DIGIT, code_points("abcdefABCDEF")),
    "Space": _SPACE,
}
_CATEGORY_LETTERS = {"L": "ultmo", "M": "nec", "N": "dlo", "Z": "slp", "C": "cf", "P": "dsecoif", "S": "mcko"}
_CATEGORIES = frozenset(first + second for first, more in _CATEGORY_LETTERS.items() for second in ("", *more))
_CATEGORY = re.compile("(?:Is|gc=|general_category=)?([A-Za-z]{1,2})")
_SHORT: Mapping[str, CodePoints] = {
    "d": _DIGIT,
    "w": union(_ALNUM, code_points("_")),
    "s": _SPACE,
    "h": code_points(" \t\xa0\u1680\u180e\u202f\u205f\u3000", (0x2000, 0x200A)),
    "v": union(LINE_ENDS, code_points("\x0b\f")),
}
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_OCTAL = "01234567"
_HEX = "0123456789abcdefABCDEF"
_SURROGATES = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class Reading:
    """How characters are read: Java's flags i, s and d at one place. `ascii_names`: the expression matches only ASCII names."""

    ascii_names: bool
    any_case: bool = False
    dot_all: bool = False
    unix_lines: bool = False

    def literal(self, character: str) -> CodePoints:
        return both_cases(code_points(character)) if self.any_case else code_points(character)


def short_class(letter: str, tokens: Tokens, reading: Reading) -> CodePoints | None:
    r"""The set of `\d`, `\W`, `\p{Alpha}`, after their backslash and letter were read; None if the letter begins no class."""
    if letter in {"p", "P"}:
        found = _property(tokens.until("}") if tokens.take("{") else tokens.syntax(), reading)
        return found if letter == "p" else complement(found)
    if letter.lower() not in _SHORT:
        return None
    found = _SHORT[letter.lower()]
    return found if letter.islower() else complement(found)


def escaped_character(letter: str, tokens: Tokens) -> str:
    r"""The character of `\t`, `\x41`, `\.`, after their backslash and letter were read; UnsupportedExpression for others."""
    if letter in _CONTROL:
        return _CONTROL[letter]
    readers: Mapping[str, Callable[[Tokens], int]] = {"0": _octal, "x": _hexadecimal, "u": _four_hexadecimal, "c": _control}
    if letter in readers:
        point = readers[letter](tokens)
        if point in _SURROGATES:
            raise UnsupportedExpression("half of a surrogate pair: write \\x{…}")
        return chr(point)
    if letter.isascii() and letter.isalnum():
        raise UnsupportedExpression(f"\\{letter}")
    return letter


def read_class(tokens: Tokens, reading: Reading) -> CodePoints:
    """A class in brackets, after its `[` was read."""
    negated = tokens.take("^")
    points = _operand(tokens, reading, right=False)
    while tokens.take("&&"):
        points = intersection(points, _operand(tokens, reading, right=True))
    tokens.take("]")
    return complement(points) if negated else points


def _operand(tokens: Tokens, reading: Reading, *, right: bool) -> CodePoints:
    """A union of characters, ranges and classes, up to && or `]`; `right`: after &&."""
    if tokens.sees("&&") or (right and (tokens.sees("]") or tokens.sees("^"))):
        raise UnsupportedExpression("&& without a plain class in front and behind")
    sets: list[CodePoints] = []
    nested = ampersand = False
    while not (sets and (tokens.sees("&&") or tokens.sees("]"))):
        if tokens.take("["):
            sets.append(read_class(tokens, reading))
            nested = True
        elif right and nested:
            raise UnsupportedExpression("&& in front of brackets and more behind them")
        else:
            ampersand = ampersand or tokens.sees("&")
            sets.append(_item(tokens, reading))
    if ampersand and (right or tokens.sees("&&")):
        raise UnsupportedExpression("& beside &&")
    return union(*sets)


def _item(tokens: Tokens, reading: Reading) -> CodePoints:
    """A character, a range or a class of one letter."""
    first = _character(tokens, reading)
    if not isinstance(first, str):
        return first
    if not tokens.sees("-") or tokens.sees("[", 1) or tokens.sees("]", 1):
        return reading.literal(first)
    tokens.take("-")
    last = _character(tokens, reading)
    if not isinstance(last, str) or last < first:
        raise UnsupportedExpression("a range that does not end at a later character")
    points = code_points((ord(first), ord(last)))
    return both_cases(points) if reading.any_case else points


def _character(tokens: Tokens, reading: Reading) -> str | CodePoints:
    token = tokens.read()
    if token != Token("\\"):
        return token.character
    letter = tokens.syntax()
    if letter == "v" and tokens.sees("-"):
        raise UnsupportedExpression(r"\v in a range")  # a tabulator there, as in Java 7
    found = short_class(letter, tokens, reading)
    return escaped_character(letter, tokens) if found is None else found


def _property(name: str, reading: Reading) -> CodePoints:
    category = _CATEGORY.fullmatch(name)
    if name in _POSIX:
        found = _POSIX[name]
    elif reading.ascii_names and category and category[1] in _CATEGORIES:
        found = ascii_of_category(category[1])
    else:
        raise UnsupportedExpression(f"\\p{{{name}}}, whose characters depend on Java's version (write [a-zA-Z] or the like)")
    if reading.any_case:
        raise UnsupportedExpression(f"\\p{{{name}}} beside (?i)")
    return found


def _octal(tokens: Tokens) -> int:
    digits = tokens.digits(_OCTAL, 1)
    digits += tokens.digits(_OCTAL, 2 if digits and digits in "0123" else 1)
    if not digits:
        raise UnsupportedExpression(r"\0 without octal digits")
    return int(digits, 8)


def _hexadecimal(tokens: Tokens) -> int:
    digits = tokens.until("}") if tokens.take("{") else tokens.digits(_HEX, 2).ljust(2, "?")
    if not digits or not set(digits) <= set(_HEX) or int(digits, 16) > EVERY[0][1]:
        raise UnsupportedExpression(r"\x without a hexadecimal number")
    return int(digits, 16)


def _four_hexadecimal(tokens: Tokens) -> int:
    digits = tokens.digits(_HEX, 4)
    if len(digits) < 4:
        raise UnsupportedExpression(r"\u without four hexadecimal digits")
    return int(digits, 16)


def _control(tokens: Tokens) -> int:
    character = tokens.syntax()
    if not character.isascii():
        raise UnsupportedExpression(r"\c with a letter that is not ASCII")
    return ord(character) ^ 64
