"""Java expressions, listed and generated, and names to match them with."""

from __future__ import annotations

from hypothesis import strategies as st

ALPHABET = "ab1.-_A"
LITERALS = [
    *"abcA1_- #,@:;=",
    r"\.",
    r"\-",
    r"\_",
    r"\\",
    r"\t",
    r"\n",
    r"\x61",
    r"\x{62}",
    r"\u0061",
    r"\061",
    r"\cA",
    "}",
    "]",
    r"\Qa.b\E",
    r"\Q-\E",
]
CLASSES = [
    ".",
    r"\w",
    r"\W",
    r"\d",
    r"\D",
    r"\s",
    r"\S",
    r"\h",
    r"\v",
    r"\H",
    r"\V",
    r"\p{Alpha}",
    r"\P{Alnum}",
    r"\p{Lower}",
    r"\p{Punct}",
    r"\pL",
    r"\p{IsLu}",
    r"\R",
]
PLACES = ["^", "$", r"\b", r"\B", r"\A", r"\z", r"\Z"]
QUANTIFIERS = [*(f"{bounds}{kind}" for bounds in ("*", "+", "?", "{2}", "{1,2}", "{0,2}", "{2,}") for kind in ("", "?", "+"))]
GROUPS = ["(", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?s:", "(?-i:", "(?d:"]
ITEMS = [
    *"ab1.-_A&^$*|(){}+?",
    "a-b",
    "a-z",
    "0-9",
    "+-_",
    r"\w",
    r"\D",
    r"\.",
    r"\]",
    r"\p{Upper}",
    r"\pN",
    r"\v",
    r"\x61-b",
    "[b1]",
    "[^a]",
    "&&",
    "&&[a-z]",
    "]",
    r"\Q]\E",
    r"\Q^-\E",
]

_class = st.builds(
    lambda negation, items: f"[{negation}{''.join(items)}]",
    st.sampled_from(["", "", "^"]),
    st.lists(st.sampled_from(ITEMS), min_size=1, max_size=4),
)
_leaf = st.one_of(
    st.sampled_from(LITERALS),
    st.sampled_from(LITERALS),
    st.sampled_from(CLASSES),
    st.sampled_from(PLACES),
    st.sampled_from([r"\1", r"\2", r"\11", r"\k<n>", "(?i)", "(?s)", "(?-i)", "(?m)", "(?x)", r"\G", r"\X", r"\07", r"\e", "{", "*"]),
    _class,
    _class,
)


def _more(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = st.builds("{}{})".format, st.sampled_from([*GROUPS[:2] * 5, *GROUPS, "(?<n>"]), inner)
    return st.one_of(
        st.lists(inner, min_size=2, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join).map("(?:{})".format),
        st.lists(inner, min_size=2, max_size=3).map("|".join),
        group,
        st.builds("{}{}".format, group, st.sampled_from(QUANTIFIERS)),
        st.builds("{}{}".format, inner, st.sampled_from(QUANTIFIERS)),
        st.builds(r"({}){}\1{}".format, inner, inner, inner),
    )


EXPRESSIONS = st.recursive(_leaf, _more, max_leaves=9)
NAMES = [
    "[",
    "a}",
    "12",
    "",
    *ALPHABET,
    *(a + b for a in ALPHABET for b in ALPHABET),
    *(a + b + c for a in "ab.A" for b in "ab1" for c in "ab-"),
    "aaaa",
    "abab",
    "aabb",
    "abba",
    "a.b",
    "a\n",
    "\n",
    "\r\n",
    "a\r\n",
    "a\r",
    "\n\n",
    "\ta",
    "a-z",
    "Aa",
    "aA",
    "aAa",
    "AAb",
    "b&a",
    "]",
    "^",
    "a]",
    "&",
    "}",
    "a b",
    " ",
    "\x01",
    "\x1b",
    "\\",
    "abc",
    "cab",
    "a1b2",
    "a.b.c",
    "$",
    "*",
    "(",
    "|",
    "?",
    "+",
    "{",
    ":",
    "#",
    ",",
    "@",
]
WIDE_NAMES = [
    *NAMES,
    "é",
    "É",
    "aé",
    "\u2028",
    "a\u2028",
    "\x85",
    "\U0001d4b3",
    "\U0001d4b3a",
    "ß",
    "\u017f",
    "\u212a",
    "\xa0",
    "Ω",
    "\u0661",
    "e\u0301",
]


def _apart(text: str) -> list[str]:
    return text.split()


ACCEPTED = [
    "a b",
    *_apart(r"""
    .* a.b a\.b a|b |a a||b (?:) [ab]+ [^a] [^^] [a^] []a] [^]a] [a-] [-a] [a\-z] [a-b-] [+--] [.-_] [a[b1]] [^a[b1]] [a-z&&[^b]] [a-z&&b-y]
    [^a-z&&[^b]] [a-z&&[ab]&&[bc]] [ab&&[a][b]] [[ab]&&b] [&a] [a&b] [$*(|?+{] [\w&&[^\d]] [\Qa-\E] [\Q]\E] [\Q^\E] [\]] [\[] [\d-] [\w.]+
    ] } a} # - \- \_ \# \\ a\\? \d \D \w+ \W \s \S \h \H \v \V \R a\R \p{Alpha}+ \P{Alpha} \p{Lower}\p{Upper} \p{Punct} \p{Alnum}+
    \p{Graph} \p{Print} \p{Blank} \p{Cntrl} \p{XDigit} \p{Space} \p{ASCII}+
    \x61 \x{61} \x{0061} \u0061 \061 \0141 \012 \0612 \cA \t. \n \e \\\n|a \Qa.b\E \Qa.b \Q\E.a \Qa\Eb \Qab\E? \Q$\E \Q*\E|\Q(\E \Qa\b\E|b
    ^a$ a$ ^a$\n a$\r\n a$[\r\n] \Aa\z a\Z a\Z\n $ ^ a^|b (?d)a$\n (?d)a\Z\n (?d)a. (?s)a. a. (?s:.)a|. (?d:.) (?ds).
    (?i)ab (?i:a)b (?i)a(?-i)b (?i)[a-b]+ (?i)[^a] a(?i)b|A ((?i)a)b (?i-s)a.? (?i)a{2} (?i)[A-]
    a* a+b a?b? a{2} a{2,} a{1,2}b a{0}b a*? a+?b a?? a{1,2}? a*+b a++ a?+a a{1,2}+b (?:a|ab)*+b? (?:a|ab){2}+ (?:ab?){1,2}+b? (a)++
    (?>a|ab)b? (?>a+)b (?>ab?)b? (?:(?>a|b)b?)+ (a*)* (?:a?)+b (?:a*b?)+ (?:a|b|ab)+1? (a|b?)+- (?:^|a)+b? (?:a?){2} (?:|a){2}b
    a(?=b).+ (?!a). .(?<=b) .(?<!b) (?=ab)a.
    (?!ab).. (a)\1 (a|b)\1 (?<n>a|b)\k<n> (?<n>a)(b)?a (a)(?:b\1|\1) (a)\11|b (a(b))?\.b (?:(a)|b)\1|a
    """),
]
REFUSED_WITH_ANY_NAMES = _apart(r"\bab\b a\Bb \B.? a\b.+ \pL \PL \p{Lu} \p{IsL} \p{gc=Nd} \p{general_category=Pd}")
REFUSED = [
    "(?x)a b",
    r"\N{DIGIT ONE}",
    *_apart(r"""
    \p{IsLatin} \p{InGreek} \p{IsAlphabetic} \p{javaLowerCase} \p{Xx} \p{Alpha (?i)\p{Lower} \X \G \E \q \y \b{g} \R+ \1(a) (a)*\1
    (a)\2 (?:(a)\1)+ (?i)(a)\1 \k<n> \k (a\1) (?<n>a)(?<n>b) (?<1>a) (?<>a) (?m)a (?u)a (?U)a (?c)a (?z)a (?i (?
    [a&&] [&&a] [a&&^b] [a&&[b]c] [a&&b&c] [a&b&&c] [a&&]] [a-&&b] [z-a] [a-\d] [a-\v] [\v-a] [a [] [ [^] [a\
    a{,3} a{2,1} a{x} a{ {2} {a} a{99999999999} a** a*{2} a?* a+?? *a + ? (?i)* (*a) ^* $+ \b? (?=a)* (?!a)? (a
    a) ) (?<=a*)b (a)(?<=\1) (?:^|a){2} (?:(?=a)a|b){2,} (?<!ab|c)a (\R){2} (?:a|\R)* (?<=\R)a
    \08 \0 \xg1 \x1 \x{110000} \x{} \u12 \ud83d\ude00 a\ \x\Q41\E \p{\QAlpha\E} (?\Qi\E)a
    """),
]
